package reading

import (
	"bytes"

	"github.com/seed1158cd35/weir/llm"
)

// An event is the content of a frame of a stream, or of a part of a text, as far as it was read.
type event struct {
	kind    []byte // its "type", or its name
	block   []byte // the type of the block it belongs to
	pending []byte // text whose kind is not yet known
	piece   bool   // there was such text, even if it is not collected
	thought bool   // the text is reasoning
	choices int
	usage   bool
	errored bool   // the name marks an error
	loose   []byte // message of an error, if the event is an error; code is its code
	code    []byte
}

func (e *event) reset() {
	*e = event{kind: e.kind[:0], block: e.block[:0], pending: e.pending[:0], loose: e.loose[:0], code: e.code[:0]}
}

// name sets the name from outside the data. The "type" in the data comes later and replaces it.
func (e *event) name(b []byte) {
	e.kind = append(e.kind[:0], clip(b, maxWord)...)
	e.errored = string(b) == "error"
}

// maxWord is the maximum length in bytes of a code, kind or reason that is kept.
const maxWord = 128

func (r *Reader) said(f field, raw []byte) {
	switch {
	case f >= text && f <= partEnd:
		r.saidContent(f, raw)
	case f >= input && f <= meteredWrite:
		r.usage.said(f, raw)
		r.ev.usage = true
	case f >= errCode && f <= errQuota:
		r.fault.said(f, raw)
	default:
		r.saidOther(f, raw)
	}
}

func (r *Reader) saidContent(f field, raw []byte) {
	switch f {
	case text:
		r.writes(raw)
		r.content(raw)
	case thought:
		r.writes(raw)
		r.think(len(raw) > 0)
	case tool, media:
		if f == tool {
			r.writes(raw)
		}
		r.text.rich = true
		// The end of an object counts even if it has no value.
		r.committed = r.committed || raw == nil || len(raw) > 0
	case refusal:
		r.writes(raw)
		r.cutShort = r.cutShort || len(raw) > 0
		r.committed = r.committed || len(raw) > 0
	case rich:
		r.text.rich = true
	case delta, partText:
		r.writes(raw)
		r.pend(raw)
	case partThought:
		r.ev.thought = string(raw) == "true" || string(raw) == "reasoning_text"
	case partEnd:
		r.partEnd()
	}
}

func (r *Reader) content(raw []byte) {
	if len(raw) == 0 {
		return
	}
	r.committed = true
	r.text.add(raw)
}

func (r *Reader) think(something bool) {
	if something {
		r.committed, r.text.thoughts = true, true
	}
}

// pend keeps text until its kind is known.
func (r *Reader) pend(raw []byte) {
	r.ev.piece = r.ev.piece || len(raw) > 0
	switch {
	case !r.text.on || r.text.rich:
	case len(r.ev.pending)+len(raw) > maxText:
		r.text.rich, r.text.b, r.ev.pending = true, nil, nil
	default:
		r.ev.pending = append(r.ev.pending, raw...)
	}
}

func (r *Reader) partEnd() {
	switch {
	case !r.ev.piece:
	case r.ev.thought:
		r.think(true)
	default:
		r.committed = true
		r.text.add(r.ev.pending)
	}
	r.ev.piece, r.ev.thought, r.ev.pending = false, false, r.ev.pending[:0]
}

func (r *Reader) saidOther(f field, raw []byte) {
	switch f {
	case tier, speed, geo:
		r.usage.saidTier(f, raw)
	case writeTTL, writeOfTTL, writeEnd:
		r.usage.saidWrite(f, raw)
	case kind:
		r.ev.kind = append(r.ev.kind[:0], clip(raw, maxWord)...)
	case blockKind:
		r.ev.block = append(r.ev.block[:0], clip(raw, maxWord)...)
	case blockEnd:
		r.blockEnd()
	case index:
		r.text.rich = r.text.rich || string(raw) != "0"
	case choiceEnd:
		r.ev.choices++
	case sequence:
		if n, ok := count(raw); ok {
			r.sequence = n + 1
		}
	case finish, incomplete, blocked:
		r.finished(f, raw)
	case status:
		r.ended(string(raw))
	case looseCode, looseType:
		r.ev.code = append(r.ev.code[:0], clip(raw, maxWord)...)
	case looseMessage:
		r.ev.loose = append(r.ev.loose[:0], clip(raw, maxMessage)...)
	case model, id:
		r.named(f, raw)
	case encoded:
		r.readEncoded(raw)
	}
}

// named records the model or ID of the answer. The first one counts.
func (r *Reader) named(f field, raw []byte) {
	if f == model {
		r.text.model = first(r.text.model, raw)
	} else {
		r.text.id = first(r.text.id, raw)
	}
}

func first(old, raw []byte) []byte {
	if len(old) > 0 {
		return old
	}
	return append(old, clip(raw, maxWord)...)
}

// blockEnd detects blocks that are not text: tool calls and their results.
func (r *Reader) blockEnd() {
	switch string(r.ev.block) {
	case "", "text", "thinking", "redacted_thinking", "message", "reasoning":
	default:
		r.text.rich = true
	}
	r.ev.block = r.ev.block[:0]
}

// most returns the maximum memory in bytes for a value that spans two chunks.
func (r *Reader) most(f field) int {
	switch f {
	case text, delta, partText:
		if r.text.on {
			return maxText + 1 // one more, to detect longer texts
		}
		return 1
	case encoded:
		return maxText
	case thought, tool, media, refusal:
		return 1
	case errMessage, looseMessage:
		return maxMessage
	}
	return maxWord
}

func (r *Reader) eventEnd() {
	r.orphanError()
	r.fail()
	switch r.family {
	case llm.OpenAI:
		r.closed = r.closed || len(r.finish) > 0 && r.usage.body.any
	case llm.Responses:
		r.responseEvent()
	case llm.Anthropic:
		r.closed = r.closed || string(r.ev.kind) == "message_stop"
	case llm.Gemini:
		r.closed = r.stopped
	case llm.Converse:
		r.closed = r.closed || r.stopped && string(r.ev.kind) == "metadata"
	case llm.Invoke:
		r.closed = r.closed || r.stopped && r.usage.metered.any || string(r.ev.kind) == "message_stop"
	}
}

// orphanError detects an error whose fields are not in an error object.
func (r *Reader) orphanError() {
	if !r.ev.errored && string(r.ev.kind) != "error" || r.fault.any {
		return
	}
	r.fault.set(&r.fault.code, r.ev.code)
	r.fault.set(&r.fault.message, r.ev.loose)
	r.fault.any = true
}

// responseEvent processes the delta of an event according to the event's kind.
func (r *Reader) responseEvent() {
	kind := r.ev.kind
	switch {
	case !bytes.HasSuffix(kind, []byte(".delta")) || !r.ev.piece:
	case string(kind) == "response.output_text.delta":
		r.committed = true
		r.text.add(r.ev.pending)
	case string(kind) == "response.refusal.delta":
		r.committed, r.cutShort = true, true
	case bytes.HasPrefix(kind, []byte("response.reasoning")):
		r.think(true)
	default:
		r.committed, r.text.rich = true, true
	}
	switch string(kind) {
	case "response.completed", "response.incomplete", "response.failed":
		r.closed = true
	}
}

func (r *Reader) textEnd() {
	r.closed = true
	if r.status >= 400 && !r.fault.any {
		r.fault.set(&r.fault.code, r.ev.code)
		r.fault.set(&r.fault.message, r.ev.loose)
		r.fault.any = true
	}
	r.orphanError()
	r.fail()
	r.hollow = !r.committed
	r.committed = r.committed || r.problem == nil
}
