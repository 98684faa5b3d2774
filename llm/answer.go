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

// Answer writes an answer in the family's format, with status 200. It is a stream if the request asks for one, and has
// the requested number of choices. The metadata is written to
//
//   - "metadata" of a chat completion, of the first chunk of its stream, of a response, and of an Anthropic message;
//   - "additionalModelResponseFields" of Converse, in messageStop of its stream;
//   - no field for Gemini and Invoke, because some of their clients reject unknown fields, and none for legacy
//     completions.
//
// Answer returns nil, nil for requests that do not ask for generated text (Generates is false).
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

// A voice writes answers in the format of one family.
type voice struct {
	whole  func(*said) object
	events func(*said) []event
	frame  func(*Request, []event) (contentType string, body []byte)
}

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

// A said is an answer with the data needed to write it.
type said struct {
	*Request
	id      string // without prefix
	created int64  // Unix time in seconds
	by      string // the model that the answer names
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

// named returns the ID with the prefix of the object that it identifies.
func (s *said) named(prefix string) string {
	if strings.HasPrefix(s.id, prefix) {
		return s.id
	}
	return prefix + s.id
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never returns an error
	return hex.EncodeToString(b[:])
}

// fresh returns the input tokens without cached ones, which is what Anthropic and Bedrock report as input.
func (u Usage) fresh() int64 { return max(0, u.Input-u.CacheRead-u.CacheWrite) }

// maxPiece is the maximum size in bytes of the text in one event. Some clients read lines into 64 KiB buffers.
const maxPiece = 4096

// pieces splits the text at character boundaries into parts of at most maxPiece bytes.
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

// choices returns the number of choices to write: the requested number, but at most 128, the providers' limit.
func (s *said) choices() int { return int(min(s.Choices, 128)) }

// with appends a member with the metadata, unless there is none or the family has no field for it.
func (s *said) with(o object, name string) object {
	if len(s.meta) == 0 || s.Family == Invoke {
		return o
	}
	return append(o, name, s.meta)
}

// echo returns the value of a request field, or the provider's default if the request does not set it.
func (s *said) echo(name string, otherwise any) any {
	if n := s.doc.member(0, name); n != 0 && s.doc.kind(n) != kindNull {
		return json.RawMessage(s.doc.raw(n))
	}
	return otherwise
}
