// Package reading reads the answer of a language model while it is passed on. It finds the usage, whether the caller has
// received content, errors inside a 200 response, and whether the answer is complete.
//
// A [Reader] changes no bytes, keeps at most one incomplete frame, and parses only the values it needs.
package reading

import (
	"bytes"
	"encoding/base64"
	"net/http"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

// A Reader reads one answer. The caller passes every chunk to Feed and then calls End. The other methods may be called
// after each of them. A Reader is not safe for concurrent use.
type Reader struct {
	family llm.Family
	form   form
	status int
	header http.Header

	cut  frame.Splitter // nil for JSON without streaming
	json scanner        // of the current frame, or of the entire text
	in   scanner        // of the base64 content of a frame
	big  bigEvent       // the current frame, if it is too large to keep

	ev    event
	usage usage
	text  collected

	committed bool
	hollow    bool   // a complete text without content
	finish    []byte // reason why the model stopped
	pending   bool   // a Response that is not generated yet
	cutShort  bool   // incomplete, or the model refused
	stopped   bool   // the event with the reason has arrived
	closed    bool   // no more events can follow
	fault     fault
	problem   *Problem
	sequence  int64 // of the next event, for numbered events
	elements  int   // number of array elements read

	written func([]byte) // receives the model's output
	plain   []byte       // the output without escapes
	passed  int64        // bytes that were not given to written

	dropUsage bool
	out       []byte // bytes to pass on, after an event was dropped
	decoded   []byte
}

// New returns a reader for the answer to a call on route. stream reports whether the request asked for a stream. It is
// used if the Content-Type is not specific. header is the answer's header. The Reader keeps it and does not change it.
//
// For answers with an error status, package classify gives better results.
func New(route llm.Route, stream bool, status int, header http.Header) *Reader {
	r := &Reader{family: route.Family, status: status, header: header}
	r.form = formOf(route, stream, header)
	r.cut = r.form.splitter()
	r.json.to, r.in.to = r, r
	r.json.reset(treeOf(r.family))
	r.usage.readHeader(header)
	return r
}

// WithoutUsage makes Feed drop the event that contains only usage. OpenAI adds it to a stream because of
// stream_options.include_usage, and a caller that did not ask for it must not receive it. Call WithoutUsage before Feed.
func (r *Reader) WithoutUsage() { r.dropUsage = r.family == llm.OpenAI }

// Written makes the reader call f with each piece of the model's output: text, reasoning, tool calls. f must not keep
// the slice. Call Written before Feed.
func (r *Reader) Written(f func(piece []byte)) { r.written = f }

// Passed returns the number of bytes that were not given to the function of Written: an answer without streaming, and
// events that are too large to keep.
func (r *Reader) Passed() int64 { return r.passed }

func (r *Reader) writes(raw []byte) {
	if r.written == nil || len(raw) == 0 || r.cut == nil {
		return
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		r.plain = unquote(r.plain[:0], raw)
		raw = r.plain
	}
	r.written(raw)
}

// Blind reports whether the answer cannot be read because it is compressed or has an unknown type. Then everything is
// passed on, the first byte commits, and usage, errors and the end are unknown.
func (r *Reader) Blind() bool { return r.form == blind }

// Streamed reports whether the answer is a stream of events.
func (r *Reader) Streamed() bool { return r.cut != nil }

// Feed reads a chunk and returns the bytes that can be passed on: complete frames, unchanged and in order. It returns
// nothing while a frame is incomplete. Answers without streaming, and frames that are too large to keep, are passed on
// as they arrive. The slice is valid until the next Feed or End. It may share memory with p.
//
// An incomplete frame of a stream is kept in memory, up to 1 MiB.
func (r *Reader) Feed(p []byte) (whole []byte) {
	if r.cut == nil {
		r.passed += int64(len(p))
		r.feedText(p)
		return p
	}
	r.cut.Feed(p)
	return r.frames()
}

func (r *Reader) feedText(p []byte) {
	if r.form == blind {
		r.committed = r.committed || len(p) > 0
		return
	}
	r.json.feed(p)
	if r.json.ended && !r.closed {
		r.textEnd()
	}
}

// frames reads all complete frames. They are adjacent in memory, so copying is only needed after a dropped frame.
func (r *Reader) frames() (whole []byte) {
	copied := false
	for f, ok := r.cut.Next(); ok; f, ok = r.cut.Next() {
		switch drop := r.read(f); {
		case drop && !copied:
			r.out = append(r.out[:0], whole...)
			whole, copied = r.out, true
		case drop:
		case copied:
			r.out = append(r.out, f.Raw...)
			whole = r.out
		case len(whole) == 0:
			whole = f.Raw
		default:
			whole = whole[:len(whole)+len(f.Raw)]
		}
	}
	return whole
}

// read reads a frame and reports whether it must not be passed on.
func (r *Reader) read(f frame.Frame) (drop bool) {
	if f.Opaque {
		r.opaque(f)
		return false
	}
	r.ev.reset()
	switch r.form {
	case events:
		r.readEvent(frame.ParseEvent(f.Raw, nil))
	case messages:
		r.readMessage(f.Raw)
	case array:
		r.readElement(frame.Element(f.Raw))
	}
	return r.dropUsage && r.ev.usage && r.ev.choices == 0 && r.problem == nil
}

// opaque reads a frame that is too large to keep and is therefore passed on.
func (r *Reader) opaque(f frame.Frame) {
	if m, ok := r.cut.(*frame.Messages); ok && m.Lost() {
		r.garbled(frame.ErrChecksum)
	}
	r.committed = r.committed || r.problem == nil
	r.passed += int64(len(f.Raw))
	r.big.read(r, f)
}

// garbled reports data that is not a message or was corrupted.
func (r *Reader) garbled(err error) {
	r.fault.any = true
	r.fault.set(&r.fault.code, []byte("InternalFailure"))
	r.fault.set(&r.fault.message, []byte(err.Error()))
	r.fail()
}

func (r *Reader) readEvent(e frame.Event) {
	if !e.Said {
		return
	}
	r.ev.name(e.Name)
	if string(e.Data) == "[DONE]" {
		r.closed = r.closed || r.family == llm.OpenAI
		return
	}
	r.readText(e.Data)
}

func (r *Reader) readText(data []byte) {
	if len(data) == 0 {
		return
	}
	r.json.reset(treeOf(r.family))
	r.json.feed(data)
	r.eventEnd()
}

func (r *Reader) readElement(data []byte) {
	if len(data) > 0 {
		r.elements++
		r.readText(data)
	}
}

func (r *Reader) readMessage(raw []byte) {
	m, err := frame.ParseMessage(raw)
	if err != nil {
		r.garbled(err)
		return
	}
	switch string(m.Type) {
	case "exception", "error":
		r.readException(m)
		return
	}
	r.ev.name(m.Event)
	if r.family == llm.Invoke {
		r.json.reset(chunkTree)
		r.json.feed(m.Payload)
		return
	}
	r.readText(m.Payload)
}

// readEncoded reads a chunk of a vendor's own format, which Bedrock encodes in base64.
func (r *Reader) readEncoded(raw []byte) {
	n := base64.StdEncoding.DecodedLen(len(raw))
	if cap(r.decoded) < n {
		r.decoded = make([]byte, n)
	}
	n, err := base64.StdEncoding.Decode(r.decoded[:n], raw)
	if err != nil {
		return
	}
	r.in.reset(treeOf(r.family))
	r.in.feed(r.decoded[:n])
	r.eventEnd()
}

// End reports the end of the body. A last event without the final blank line, which some servers omit, is read if it is
// otherwise complete. End returns it to be passed on. Anything else stays in Tail.
func (r *Reader) End() (whole []byte) {
	if r.big.open && r.json.whole() {
		r.eventEnd() // its parts were already passed on
	}
	if r.form != events || !r.lastEvent(r.cut.Rest()) {
		return nil
	}
	r.cut.Feed([]byte("\n\n"))
	return r.frames()
}

// lastEvent reports whether the rest of a stream is an event that is complete except for the blank line.
func (r *Reader) lastEvent(rest []byte) bool {
	e := frame.ParseEvent(rest, nil)
	if !e.Said || r.big.open {
		return false
	}
	if string(e.Data) == "[DONE]" {
		return true
	}
	s := scanner{to: deaf{}}
	s.reset(nil)
	s.feed(e.Data)
	return s.whole()
}

type deaf struct{}

func (deaf) said(field, []byte) {}
func (deaf) most(field) int     { return 0 }

// Tail returns the received part of an incomplete frame, which was not passed on.
func (r *Reader) Tail() []byte {
	if r.cut == nil {
		return nil
	}
	return r.cut.Rest()
}

// Committed reports whether the caller receives content when all bytes returned by Feed are passed on: text, reasoning,
// an argument of a tool call, or audio. Until then another answer can replace this one.
func (r *Reader) Committed() bool { return r.committed }

// Complete reports whether the answer has ended normally. The normal end is:
//
//   - for OpenAI streams: [DONE], or a finish reason and the usage;
//   - for Anthropic: message_stop;
//   - for a Response: its last event;
//   - for Gemini: a finishReason or a blocked prompt;
//   - for Converse: messageStop and metadata;
//   - for other Bedrock models: the model's own end, or Bedrock's metrics;
//   - without streaming: a complete and valid text.
//
// A stream that ends otherwise was cut. An error that the provider reports is not a normal end, except that a failed
// Response is complete. Check Failed first.
func (r *Reader) Complete() bool { return r.closed && (r.form != text1 || r.json.whole()) }

// Hollow reports whether the answer is a complete text without streaming that has no content, no finish reason and no
// usage. A Response that runs in the background is not hollow.
func (r *Reader) Hollow() bool {
	return r.hollow && !r.pending && len(r.finish) == 0 && !r.Usage().Said
}

// Finish returns the provider's reason why the model stopped: "stop", "end_turn", "MAX_TOKENS". It is empty if not
// reported.
func (r *Reader) Finish() string { return string(r.finish) }

// Truncated reports whether the answer is incomplete, for example because of its length, or the model refused. Such an
// answer must not be cached. Truncated is also true for an unknown reason.
func (r *Reader) Truncated() bool { return r.cutShort || r.pending }

// Usage returns the usage that the answer has reported so far. Until the answer is Complete, the output is usually
// missing or too low.
func (r *Reader) Usage() llm.Usage { return r.usage.sum() }
