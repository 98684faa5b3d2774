package llm

import (
	"iter"
	"strings"
)

// A piece is a part of the prompt: a text, media, or token numbers. A text is a string or raw JSON.
type piece struct {
	what  what
	part  Part
	node  uint32
	media Media
	count int64
}

type what uint8

const (
	isText what = iota
	isMedia
	isNumbers
)

// pieces iterates over the prompt. It does not follow the families' schemas, which change every month. It uses what they
// have in common: text is in strings, some names contain protocol values, and some contain media. New fields are
// therefore counted, although not exactly.
func (r *Request) pieces() iter.Seq[piece] {
	return func(yield func(piece) bool) {
		w := walker{d: &r.doc, yield: yield}
		for _, f := range []field{fTools, fFunctions, fSchema} {
			if n := r.at[f]; n != 0 {
				w.emit(piece{part: InTools, node: n})
			}
		}
		w.part = InSystem
		w.walk(r.at[fSystem])
		switch {
		case r.Family == Invoke || r.at[fMessages] == 0:
			w.rest(r)
		case r.Family == OpenAI:
			w.chat(r.at[fMessages])
			for _, n := range r.more {
				w.chat(n)
			}
		default:
			w.part = InMessages
			w.walk(r.at[fMessages])
		}
	}
}

type walker struct {
	d     *document
	yield func(piece) bool
	part  Part
	done  bool
}

func (w *walker) emit(p piece) {
	w.done = w.done || !w.yield(p)
}

// rest walks through all members of the body that have no other known use. One of them contains the prompt under an
// unknown name.
func (w *walker) rest(r *Request) {
	w.part = InMessages
	if w.d.kind(0) != kindObject {
		w.walkAny(0)
		return
	}
	for k := uint32(1); k < w.d.nodes[0].next && !w.done; k = w.d.nodes[k+1].next {
		if f := r.field(w.d.text(k, nil)); f == unread || f == fMessages {
			w.member(k, 0, "")
		}
	}
}

// chat separates OpenAI's instructions, which are among the messages, from the other messages.
func (w *walker) chat(messages uint32) {
	if w.d.kind(messages) != kindArray {
		w.part = InMessages
		w.walk(messages)
		return
	}
	w.numbers(messages)
	for e := messages + 1; e < w.d.nodes[messages].next && !w.done; e = w.d.nodes[e].next {
		w.part = InMessages
		if role := w.d.says(e, "role"); role == "system" || role == "developer" {
			w.part = InSystem
		}
		w.walk(e)
	}
}

// walk finds the pieces of a value. It does nothing if n is 0.
func (w *walker) walk(n uint32) {
	if n != 0 {
		w.walkAny(n)
	}
}

func (w *walker) walkAny(n uint32) {
	if w.done {
		return
	}
	switch v := &w.d.nodes[n]; v.kind {
	case kindString:
		w.emit(piece{part: w.part, node: n})
	case kindArray:
		w.numbers(n)
		for e := n + 1; e < v.next && !w.done; e = w.d.nodes[e].next {
			w.walkAny(e)
		}
	case kindObject:
		parent := w.d.says(n, "type")
		for k := n + 1; k < v.next && !w.done; k = w.d.nodes[k+1].next {
			w.member(k, n, parent)
		}
	}
}

func (w *walker) numbers(n uint32) {
	var count int64
	for e := n + 1; e < w.d.nodes[n].next; e = w.d.nodes[e].next {
		if w.d.kind(e) == kindNumber {
			count++
		}
	}
	if count > 0 {
		w.emit(piece{what: isNumbers, part: w.part, count: count})
	}
}

// member walks through the member whose name is node k. typ is the "type" of its object, or "".
func (w *walker) member(k, object uint32, typ string) {
	v := k + 1
	name := w.d.text(k, nil)
	switch string(name) {
	case "type", "role", "id", "tool_call_id", "tool_use_id", "toolUseId", "call_id", "status", "cache_control", "cachePoint", "format", "detail",
		"signature", "thoughtSignature", "thought_signature", "anthropic_version", "schemaVersion", "stop", "stop_sequences":
		return
	case "input", "args", "arguments", "json", "response": // of tools: any JSON
		if w.d.kind(v) != kindString && object != 0 {
			w.emit(piece{part: w.part, node: v})
			return
		}
	}
	if kind := mediaKind(string(name), typ); kind != "" && w.holdsMedia(string(name), v) {
		w.media(v, kind, w.d.says(object, "detail"))
		return
	}
	w.walkAny(v)
}

// mediaKind returns the kind of media in a member of that name, in an object of type typ. It returns "" for text.
func mediaKind(name, typ string) MediaKind {
	switch name {
	case "image_url", "image", "inputImage", "images":
		return Image
	case "input_audio", "audio":
		return Audio
	case "video":
		return Video
	case "document", "file", "file_data", "file_id", "file_url", "inlineData", "inline_data", "fileData", "file_uri", "container_upload":
		return Document
	case "source":
		if typ == "image" {
			return Image
		}
		return Document
	}
	return ""
}

// holdsMedia reports whether a member contains media. The same name can also contain text.
func (w *walker) holdsMedia(name string, v uint32) bool {
	switch w.d.kind(v) {
	case kindObject:
		return true
	case kindString:
		return name != "source" && name != "document" && name != "file" && name != "image" || w.reference(v)
	}
	return false
}

// reference reports whether a string is a link or a data URL.
func (w *walker) reference(n uint32) bool {
	v := &w.d.nodes[n]
	s := string(w.d.body[v.start:min(v.end, v.start+8)])
	return strings.HasPrefix(s, "data:") || strings.HasPrefix(s, "http:") || strings.HasPrefix(s, "https:") || strings.HasPrefix(s, "gs:") || strings.HasPrefix(s, "s3:")
}
