// Package frame splits the streams of language models into complete frames and writes frames. It supports server-sent
// events, AWS event streams, and the JSON array that Gemini streams unless the request asks for events. It does not
// interpret the contents of frames.
//
// A splitter changes no bytes. For all chunk sizes, the returned frames followed by Rest are equal to the input.
package frame

// defaultMax is the default size in bytes above which a frame is not kept until it is complete.
const defaultMax = 1 << 20

// A Frame is a sequence of received bytes.
type Frame struct {
	// Raw is valid until the next Feed. The frames returned between two calls of Feed are adjacent in one array. A
	// caller can therefore pass them on as one slice, from the first byte of the first frame to the last byte of the
	// last.
	Raw []byte

	// Opaque is set for parts of a frame that is too large to keep, and for data that cannot be split because its format
	// is wrong.
	Opaque bool

	// More reports that the following data belongs to the same opaque frame.
	More bool
}

// A Splitter splits a stream. The caller passes received bytes to Feed and then calls Next until it returns false. A
// Splitter does not use p after that.
//
// A Splitter keeps at most one frame of the maximum size and the bytes of the last Feed. It is not safe for concurrent
// use.
type Splitter interface {
	Feed(p []byte)
	Next() (f Frame, ok bool)

	// Rest returns the received part of an incomplete frame. It is valid until the next Feed.
	Rest() []byte
}

var (
	_ Splitter = (*SSE)(nil)
	_ Splitter = (*Messages)(nil)
	_ Splitter = (*Array)(nil)
)
