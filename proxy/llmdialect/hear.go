package llmdialect

import (
	"bytes"
	"compress/gzip"
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
	estimate tokens.Estimate   // see expected
	guessed  bool              // there is an estimate
	key      *cache.Key        // see kept
	whose    string            // the answers that are kept: the tenant's, or those of who has the same API key
	array    bool              // a stream of Gemini's is to be an array
	priority limit.Priority
	stop     stopper     // of the present attempt
	taken    http.Header // what the dialect below has taken out of the request
}

var _ proxy.Conductor = (*exchange)(nil)

// Hear is proxy.Dialect's. It reads the bodies of calls of models, which say what they
// will cost; all others pass as they come.
func (d *Dialect) Hear(r *http.Request, path string) (proxy.Exchange, *proxy.Failure) {
	x := &exchange{d: d, language: r.Header.Get("Accept-Language"), version: version(r, path), fresh: cache.Usable(r.Header)}
	known := false
	if x.route, known = llm.Recognize(r.Method, path, r.URL.RawQuery); !known {
		x.route = llm.Default(d.o.Family)
	}
	x.array = x.route.Family == llm.Gemini && x.route.Stream && !strings.Contains(r.URL.RawQuery, "alt=sse")
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
	before := r.Header.Clone()
	var f *proxy.Failure
	x.inner, f = d.o.Inner.Hear(r, path)
	for name := range r.Header {
		delete(before, name)
	}
	x.taken = before
	return x, f
}

// identify finds out who calls.
func (x *exchange) identify(r *http.Request) *proxy.Failure {
	x.keys = make(map[string]string, 8)
	if b := billOf(r.Context()); b != nil { // it is sent in the place of another, and its caller is known
		for scope, value := range b.of.keys {
			x.keys[scope] = value
		}
		x.whose = b.of.whose
	} else if c := x.d.o.Callers; c != nil {
		if err := c.identify(r, x.keys); err != nil {
			return &proxy.Failure{Status: http.StatusUnauthorized, Code: proxy.ValidationError, Message: err.Error(), Final: true}
		}
	}
	for scope, read := range x.d.scopes {
		if _, ok := x.keys[scope]; !ok {
			x.keys[scope] = read(r)
		}
	}
	if x.whose == "" {
		x.whose = x.keys[Tenant]
	}
	if x.whose == "" && x.d.o.Key != "" { // those who share weir's key may still be different people
		x.whose = x.keys[User] + "\n" + fingerprint(x.d.presented(r))
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

// versions are the headers that say in which version of its words a provider answers, and
// for whom.
var versions = []string{
	"Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Openai-Organization", "Openai-Project",
	"X-Amzn-Bedrock-Guardrailidentifier", "X-Amzn-Bedrock-Guardrailversion", "X-Amzn-Bedrock-Trace",
	"X-Amzn-Bedrock-Performanceconfig-Latency", "X-Amzn-Bedrock-Service-Tier",
}

// version is what besides the body changes an answer: where the model is asked, the
// parameters of the query, and versions.
func version(r *http.Request, path string) string {
	v := path[:strings.LastIndexByte(path, '/')+1] + "?" + without(r.URL.RawQuery, func(name, value string) bool {
		return name == "key" || name == "access_token" || name == "alt" && (value == "sse" || value == "json")
	})
	for _, name := range versions {
		if said := r.Header[name]; len(said) > 0 {
			v += "\n" + name + ": " + strings.Join(said, ",")
		}
	}
	return v
}

// read reads and parses the body, and puts it back. One that is packed is sent on unpacked,
// or nobody would count what it asks for; but in another way than gzip it is not looked
// into, and costs what its size suggests.
func (x *exchange) read(r *http.Request) *proxy.Failure {
	if err := unpack(r); err != nil {
		return unread(err, x.d.o.MaxBody)
	}
	if r.Header.Get("Content-Encoding") != "" {
		x.estimate = x.d.o.Tokens.Estimate(x.route.Family, x.route.Model, tokens.Prompt{Bytes: max(0, r.ContentLength)}, 0)
		x.guessed = true
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
	if b := billOf(r.Context()); b != nil && b.of.request != nil && b.of.request.AddedUsage {
		x.request.AddedUsage = true // it asks already, but not for its caller
	}
	body = x.request.AskUsage()
	r.Body = &readBody{bytes.NewReader(body), r.Body}
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	return nil
}

// unpack puts what a body holds that is packed with gzip in its place.
func unpack(r *http.Request) error {
	if e := r.Header["Content-Encoding"]; len(e) != 1 || !strings.EqualFold(e[0], "gzip") && !strings.EqualFold(e[0], "x-gzip") {
		return nil
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{plain, r.Body}
	r.ContentLength = -1
	r.Header.Del("Content-Encoding")
	r.Header.Del("X-Amz-Content-Sha256") // of what was packed
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
	c.Pool = x.keys[Pool]
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
