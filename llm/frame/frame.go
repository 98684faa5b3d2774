// Package frame cuts the streams of language models into whole frames and
// writes frames: server-sent events, AWS event streams, and the JSON array that
// Gemini streams unless it is asked for events. It knows nothing of what the
// frames say.
//
// A splitter changes no byte. All frames it has given out, one after the other,
// and then Rest are what it was fed, however that was chunked.
package frame

// defaultMax is the size in bytes up to which a frame is held until it is whole,
// unless the splitter says otherwise.
const defaultMax = 1 << 20

// A Frame is a run of bytes as they came.
type Frame struct {
	// Raw is valid until the next Feed. The frames that come between two calls
	// of Feed lie one behind the other in one array, so that they can be passed
	// on as one slice, from the first byte of the first to the last of the last.
	Raw []byte

	// Opaque is set on the pieces of a frame that is too large to be held, and on
	// what cannot be cut because it is not of the form.
	Opaque bool

	// More means that what follows belongs to the same opaque frame.
	More bool
}

// A Splitter cuts a stream. Feed hands it what has come; then Next is called
// until it reports false. A Splitter may keep p until then, and not longer.
//
// It holds at most one frame of the largest size and what was fed last.
type Splitter interface {
	Feed(p []byte)
	Next() (f Frame, ok bool)

	// Rest is what has come of a frame that is not whole. It is valid until the
	// next Feed.
	Rest() []byte
}

var (
	_ Splitter = (*SSE)(nil)
	_ Splitter = (*Messages)(nil)
	_ Splitter = (*Array)(nil)
)
