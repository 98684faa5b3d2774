// Package reading reads the answer of a language model while it passes by: what
// the call has used, whether the caller has been given something yet, whether the
// provider reports an error inside of a 200, and whether the end is a proper one.
//
// A [Reader] changes nothing, holds at most one frame that is not whole, and looks
// only at the values it needs.
package reading

import (
	"bytes"
	"encoding/base64"
	"net/http"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

// A Reader reads one answer. Feed is called with every chunk, then End at the end
// of the body; all that it can be asked may be asked after either. It is not safe
// for concurrent use.
type Reader struct {
	family llm.Family
	form   form
	status int
	header http.Header

	cut  frame.Splitter // nil for a JSON text that is not streamed
	json scanner        // of the present frame, or of the whole text
	in   scanner        // of what a frame holds in base64
	big  bigEvent       // the present frame, if it is too large to be held

	ev    event
	usage usage
	text  collected

	committed bool
	hollow    bool   // a whole text in which there was no content
	finish    []byte // why the model stopped
	pending   bool   // it is a Response that is still to be made
	cutShort  bool   // before it was done, or it would not answer
	stopped   bool   // the event that says so has come
	closed    bool   // nothing more can follow
	fault     fault
	problem   *Problem
	sequence  int64 // of the next event, where they are numbered
	elements  int   // of an array, that have been read

	written func([]byte) // called with what the model has written
	plain   []byte       // that without escapes
	passed  int64        // bytes, of what is not read as it comes

	dropUsage bool
	out       []byte // what is passed on, where a frame was dropped from between
	decoded   []byte
}

// New is a reader of the answer to a call of this route. stream says whether the
// request asked for a stream, which matters where the answer's Content-Type does
// not tell. header is the answer's; it is kept, and not changed.
//
// Answers with a status of an error are better given to package classify; what
// is said of them here is no more than that.
func New(route llm.Route, stream bool, status int, header http.Header) *Reader {
	r := &Reader{family: route.Family, status: status, header: header}
	r.form = formOf(route, stream, header)
	r.cut = r.form.splitter()
	r.json.to, r.in.to = r, r
	r.json.reset(treeOf(r.family))
	r.usage.readHeader(header)
	return r
}

// WithoutUsage drops the event from what Feed passes on that holds nothing but the
// usage. OpenAI adds it to a stream because of stream_options.include_usage; it
// must not reach a caller that did not ask for it. It is to be called before Feed.
func (r *Reader) WithoutUsage() { r.dropUsage = r.family == llm.OpenAI }

// Written has f called with what the model writes as it passes by: words, thoughts, calls of
// tools, a piece at a time. f must not keep it. It is to be called before Feed.
func (r *Reader) Written(f func(piece []byte)) { r.written = f }

// Passed is how many bytes of the answer have passed that were not given to f: of
// one that is no stream, and of events that are too large to be held.
func (r *Reader) Passed() int64 { return r.passed }

// writes tells what the model has written.
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

// Blind reports whether the answer cannot be read, because it is compressed or of
// a type that is not known. Everything is passed on then, the first byte commits,
// and there is no usage, no error and no proper end.
func (r *Reader) Blind() bool { return r.form == blind }

// Streamed reports whether the answer is a stream of events.
func (r *Reader) Streamed() bool { return r.cut != nil }

// Feed reads what has come and returns what can be passed on of this and earlier
// chunks: whole frames, in the order and with the bytes they came with. It is
// empty while a frame is not whole; an answer that is not streamed, and frames
// that are too large to be held, are passed on as they come. The slice is valid
// until the next Feed or End, and may be p itself or a part of it.
//
// A frame of a stream is held in memory until it is whole, up to 1 MiB.
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

// frames reads all whole frames there are. They lie one behind the other, so that
// what is passed on needs copying only where one is dropped.
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

// opaque reads what cannot be held, and so cannot be kept back.
func (r *Reader) opaque(f frame.Frame) {
	if m, ok := r.cut.(*frame.Messages); ok && m.Lost() {
		r.garbled(frame.ErrChecksum)
	}
	r.committed = r.committed || r.problem == nil
	r.passed += int64(len(f.Raw))
	r.big.read(r, f)
}

// garbled reports what is no message, or one that was changed on its way.
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

// readEncoded reads the chunk of an answer in a model's own words, which Bedrock
// wraps in base64.
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

// End says that the body has ended. It reads what came last as far as it makes
// sense without the blank line that servers forget, and returns that, to be passed
// on; what does not make sense stays in Tail.
func (r *Reader) End() (whole []byte) {
	if r.big.open && r.json.whole() {
		r.eventEnd() // what came of it has been passed on
	}
	if r.form != events || !r.lastEvent(r.cut.Rest()) {
		return nil
	}
	r.cut.Feed([]byte("\n\n"))
	return r.frames()
}

// lastEvent reports whether the rest of a stream is an event but for its end.
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

// Tail is what has come of a frame that is not whole, and was not passed on.
func (r *Reader) Tail() []byte {
	if r.cut == nil {
		return nil
	}
	return r.cut.Rest()
}

// Committed reports whether the caller has been given something once all that Feed
// has returned is passed on: text, a thought, an argument of a tool's call, audio.
// Until then another answer can still take this one's place.
func (r *Reader) Committed() bool { return r.committed }

// Complete reports whether the proper end has come. A stream of OpenAI's ends with
// [DONE], or with a reason and the usage; one of Anthropic's with message_stop; a
// Response with its last event; Gemini's with a finishReason or a blocked prompt;
// Converse's with messageStop and metadata; any other of Bedrock's with its
// model's own end or Bedrock's metrics; a text that is not streamed when it is
// whole and valid. A stream that ends otherwise was cut.
//
// An error that the provider reports is not a proper end, except that a Response
// which failed is complete, too; ask Failed first.
func (r *Reader) Complete() bool { return r.closed && (r.form != text1 || r.json.whole()) }

// Hollow reports whether the answer is a whole text that is not streamed and has nothing in
// it that a model's answer has: no content, no reason why it ended, no usage. A Response that is
// made in the background has none of it yet.
func (r *Reader) Hollow() bool {
	return r.hollow && !r.pending && len(r.finish) == 0 && !r.Usage().Said
}

// Finish is why the model stopped, in the provider's word: "stop", "end_turn",
// "MAX_TOKENS". It is empty if that was not said.
func (r *Reader) Finish() string { return string(r.finish) }

// Truncated reports whether the answer stopped before it was done, for its length
// or otherwise, or the model would not give it. No such answer may be kept. It is
// also true where the reason is a word that is not known.
func (r *Reader) Truncated() bool { return r.cutShort || r.pending }

// Usage is what the answer has said so far that was used. If the answer is not
// Complete, the output is usually not said yet, or too low.
func (r *Reader) Usage() llm.Usage { return r.usage.sum() }
