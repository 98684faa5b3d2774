package llmdialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cache"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/proxy"
)

// An exchange is one request.
type exchange struct {
	d     *Dialect
	inner proxy.Exchange // nil if there is no dialect below

	route    llm.Route
	request  *llm.Request // nil if the body was not read
	language string       // what the caller reads, as Accept-Language has it

	keys     map[string]string // what the caller is counted by
	fresh    bool              // the caller takes an answer that was kept
	version  string            // headers that change what an answer looks like
	estimate tokens.Estimate
	priority limit.Priority
	stop     stopper // of the present attempt
}

var _ proxy.Conductor = (*exchange)(nil)

// Hear is proxy.Dialect's. It reads the bodies of calls of models, which say what they
// will cost; all others pass as they come.
func (d *Dialect) Hear(r *http.Request, path string) (proxy.Exchange, *proxy.Failure) {
	x := &exchange{d: d, language: r.Header.Get("Accept-Language"), version: version(r.Header), fresh: cache.Usable(r.Header)}
	known := false
	if x.route, known = llm.Recognize(r.Method, path, r.URL.RawQuery); !known {
		x.route = llm.Default(d.o.Family)
	}
	if d.o.Priority != nil {
		x.priority = d.o.Priority(r)
	}
	if f := x.identify(r); f != nil {
		return x, f
	}
	if known && r.Method == http.MethodPost {
		if f := x.read(r); f != nil {
			return x, f
		}
	}
	x.name()
	if d.o.Inner == nil {
		return x, nil
	}
	var f *proxy.Failure
	x.inner, f = d.o.Inner.Hear(r, path)
	return x, f
}

// identify finds out who calls.
func (x *exchange) identify(r *http.Request) *proxy.Failure {
	x.keys = make(map[string]string, 8)
	if c := x.d.o.Callers; c != nil {
		if err := c.identify(r, x.keys); err != nil {
			return &proxy.Failure{Status: http.StatusUnauthorized, Code: proxy.ValidationError, Message: err.Error(), Final: true}
		}
	}
	x.keys[Route], x.keys[Credential] = x.d.o.Name, fingerprint(x.d.credential(r))
	return nil
}

// name fills in what is known once the body has been read.
func (x *exchange) name() {
	model := x.route.Model
	if x.request != nil {
		model = x.request.Model
	}
	x.keys[Model] = model
	x.keys[Pool] = x.keys[Credential] + "/" + model
}

// fingerprint tells a credential from others without showing it.
func fingerprint(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// version are the headers that say in which version of its words a provider answers.
func version(h http.Header) string {
	return strings.Join([]string{h.Get("Anthropic-Version"), h.Get("Anthropic-Beta"), h.Get("OpenAI-Beta"), h.Get("OpenAI-Organization"), h.Get("OpenAI-Project")}, "\n")
}

// read reads and parses the body, and puts it back. One that is packed is not looked
// into: it costs what its size suggests.
func (x *exchange) read(r *http.Request) *proxy.Failure {
	if r.Header.Get("Content-Encoding") != "" {
		x.estimate = x.d.o.Tokens.Estimate(x.route.Family, x.route.Model, tokens.Prompt{Bytes: max(0, r.ContentLength)}, 0)
		return nil
	}
	body, err := readAll(r, x.d.o.MaxBody)
	if err != nil {
		return unread(err, x.d.o.MaxBody)
	}
	if x.request, err = x.route.Parse(body); err != nil {
		return &proxy.Failure{Status: http.StatusBadRequest, Code: proxy.ValidationError, Message: err.Error(), Final: true}
	}
	x.route = x.request.Route
	body = x.request.AskUsage()
	r.Body = &readBody{bytes.NewReader(body), r.Body}
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	x.estimate = x.guess()
	return nil
}

// A readBody is a body that has been read.
type readBody struct {
	*bytes.Reader
	io.Closer
}

func readAll(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	room := int64(bytes.MinRead)
	if r.ContentLength > 0 {
		room += min(r.ContentLength, 1<<20) // what is announced may never come
	}
	b := bytes.NewBuffer(make([]byte, 0, room))
	if _, err := b.ReadFrom(io.LimitReader(r.Body, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	return b.Bytes(), nil
}

func unread(err error, most int64) *proxy.Failure {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &proxy.Failure{Status: http.StatusRequestEntityTooLarge, Code: proxy.ValidationError, Final: true,
			Message: "the body is larger than the " + size(most) + " that are taken here"}
	}
	return &proxy.Failure{Status: http.StatusBadRequest, Code: proxy.ValidationError, Message: "the body could not be read to its end"}
}

// Describe is proxy.Exchange's.
func (x *exchange) Describe(c *weir.Call) {
	if x.inner != nil {
		x.inner.Describe(c)
	}
	if c.Operation == "" || x.inner == nil {
		c.Operation = x.route.Operation
	}
	if c.Keys == nil {
		c.Keys = make(map[string]string, len(x.keys))
	}
	for scope, value := range x.keys {
		if _, ok := c.Keys[scope]; !ok { // what the upstream's own configuration reads elsewhere stays
			c.Keys[scope] = value
		}
	}
	c.Priority = x.priority
	if x.route.Operation != other {
		// Repeating has no effect but on the bill: retries are counted, and paid for from
		// the budget.
		c.Safe = true
		c.Cost, c.Estimated = x.reserved(), true
	}
}

// other is the operation of requests that are no calls of models.
const other = "other"
