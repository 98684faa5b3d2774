package llm

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Answer writes an answer that no model has given as one of the family: with status 200,
// as a stream if the request asked for one, with as many choices as it asked for.
// Its meta data stands
//
//   - in "metadata" of a chat completion, of the first chunk of its stream, of a
//     response and of a message of Anthropic;
//   - in "additionalModelResponseFields" of Converse, in its stream in messageStop;
//   - nowhere for Gemini and Invoke, whose clients do not all take fields that they do
//     not know, and for completions of the old kind.
//
// Requests that ask for something else than text (Generates is false) have no answer
// here: nil, nil.
func (r *Request) Answer(a Answer) (http.Header, []byte) {
	r = r.open()
	v := r.voice()
	if !r.Generates || v.whole == nil {
		return nil, nil
	}
	s := r.say(a)
	h := http.Header{}
	if r.aws() {
		h.Set("X-Amzn-Requestid", s.id)
	}
	if r.Stream {
		contentType, body := v.frame(r, v.events(s))
		h.Set("Content-Type", contentType)
		h.Set("Cache-Control", "no-cache")
		if r.Family == Invoke {
			h.Set("X-Amzn-Bedrock-Content-Type", "application/json")
		}
		return h, body
	}
	h.Set("Content-Type", "application/json")
	if r.Family == Invoke {
		s.counts(h)
	}
	return h, appendObject(make([]byte, 0, len(s.text)+1024), v.whole(s))
}

func (r *Request) aws() bool { return r.Family == Converse || r.Family == Invoke }

// A voice is how a family says an answer.
type voice struct {
	whole  func(*said) object
	events func(*said) []event
	frame  func(*Request, []event) (contentType string, body []byte)
}

// An event is a part of a stream.
type event struct {
	name string
	data object
}

func (r *Request) voice() voice {
	switch r.Family {
	case OpenAI:
		if r.Operation == "completions" {
			return voice{whole: (*said).completion, events: (*said).completionChunks, frame: (*Request).openAIFrames}
		}
		return voice{whole: (*said).chat, events: (*said).chatChunks, frame: (*Request).openAIFrames}
	case Responses:
		return voice{whole: (*said).response, events: (*said).responseEvents, frame: (*Request).namedFrames}
	case Anthropic:
		return voice{whole: (*said).message, events: (*said).messageEvents, frame: (*Request).namedFrames}
	case Gemini:
		return voice{whole: (*said).content, events: (*said).contentEvents, frame: (*Request).geminiFrames}
	case Converse:
		return voice{whole: (*said).converse, events: (*said).converseEvents, frame: (*Request).converseFrames}
	case Invoke:
		return r.vendor()
	}
	return voice{}
}

// A said is an answer with all that is needed to write it.
type said struct {
	*Request
	id      string // without a prefix
	created int64  // unix seconds
	by      string // the model
	text    string
	usage   Usage
	meta    map[string]string
}

func (r *Request) say(a Answer) *said {
	if a.Created.IsZero() {
		a.Created = time.Now()
	}
	if a.ID == "" {
		a.ID = newID()
	}
	return &said{Request: r, id: a.ID, created: a.Created.Unix(), by: cmp.Or(a.Model, r.Model, "unknown"),
		text: strings.ToValidUTF8(a.Text, "\uFFFD"), usage: a.Usage, meta: a.Meta}
}

// named is the identity with the prefix of what it is the identity of.
func (s *said) named(prefix string) string {
	if strings.HasPrefix(s.id, prefix) {
		return s.id
	}
	return prefix + s.id
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// fresh is what was read and not from a cache: Anthropic and Bedrock count that alone.
func (u Usage) fresh() int64 { return max(0, u.Input-u.CacheRead-u.CacheWrite) }

// maxPiece bounds one part of a stream in bytes, since some clients read lines into
// buffers of 64 KiB.
const maxPiece = 4096

// pieces cuts a text between its characters.
func (s *said) pieces() (all []string) {
	text := s.text
	for len(text) > maxPiece {
		cut := maxPiece
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		all, text = append(all, text[:cut]), text[cut:]
	}
	if text != "" {
		all = append(all, text)
	}
	return all
}

// choices is how many choices are written: as many as were asked for, within the 128
// that providers allow.
func (s *said) choices() int { return int(min(s.Choices, 128)) }

// with appends a member with the meta data, if there is any and there is room for it.
func (s *said) with(o object, name string) object {
	if len(s.meta) == 0 || s.Family == Invoke {
		return o
	}
	return append(o, name, s.meta)
}

// echo is what the request says for a field, or else what providers take.
func (s *said) echo(name string, otherwise any) any {
	if n := s.doc.member(0, name); n != 0 && s.doc.kind(n) != kindNull {
		return json.RawMessage(s.doc.raw(n))
	}
	return otherwise
}
