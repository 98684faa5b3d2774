package llmsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// maxBody is the largest accepted request body, in bytes.
const maxBody = 32 << 20

// ServeHTTP responds in the wire format of the request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.c.Control && strings.HasPrefix(r.URL.Path, "/_sim/") {
		p.control(w, r)
		return
	}
	c := p.begin(r)
	d := dialects[c.family]
	defer p.end(c)
	if c.op == "" {
		p.fail(w, c, d, &failure{code: noRoute, status: 404}, Rejected)
		return
	}
	f, ok := p.look(c, d)
	if !ok {
		c.gone()
		return
	}
	if f != nil {
		p.fail(w, c, d, f, Rejected)
		return
	}
	if p.before(w, c, d) {
		return
	}
	if f := p.admit(c); f != nil {
		p.fail(w, c, d, f, Throttled)
		return
	}
	p.answer(w, c, d)
}

// begin starts the record of a call.
func (p *Provider) begin(r *http.Request) *call {
	rt := route(r)
	c := &call{p: p, r: r, family: rt.family, op: rt.op, model: rt.model, stream: rt.stream, array: rt.array}
	c.begun = p.clock.Now()
	c.created = p.clock.Wall(c.begun)
	c.at = &Attempt{Family: c.family, Operation: c.op, Outcome: Going, Retry: retryOf(r.Header)}
	c.free = !writes[c.op]
	p.enter(c)
	return c
}

// writes are the operations with limits.
var writes = map[string]bool{"chat": true, "responses": true, "embeddings": true, "messages": true, "generate": true, "converse": true, "invoke": true}

// retryOf returns the SDK's number of the attempt, after the first.
func retryOf(h http.Header) string {
	if n := h.Get("X-Stainless-Retry-Count"); n != "" {
		return n
	}
	return h.Get("Amz-Sdk-Request")
}

// look reads a request and returns an error in it. It returns false if the caller disconnected before the end of the request.
func (p *Provider) look(c *call, d dialect) (*failure, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &failure{code: badRequest, status: 413, message: "the request is too large"}, true
		}
		return nil, false
	}
	c.body = body
	f := p.check(c, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at.Key, c.at.Model, c.at.Stream, c.at.Question = p.keyName(c.key), c.model, c.stream, c.q.Text
	if p.c.KeepBodies {
		c.at.Body = body
	} else {
		c.at.Question = ""
	}
	return f, true
}

// check validates a request in the order of real providers: key, format, model.
func (p *Provider) check(c *call, d dialect) *failure {
	p.leaks(c)
	f := d.authenticate(c)
	if key, ok := p.c.Keys[c.key]; f == nil && p.c.Keys != nil && !ok {
		f = &failure{code: badKey, status: 401}
	} else if f == nil && key.Broke {
		f = &failure{code: broke, status: 429}
	}
	if wrong := p.wrongBody(c); wrong != nil && f == nil {
		f = wrong
	}
	if parsed := d.parse(c); f == nil {
		f = parsed
	}
	if f != nil {
		p.violate(c, "%s", f.complaint())
		return f
	}
	spec, ok := p.model(c.model)
	if !ok && c.op != "models" {
		p.violate(c, "the model is not known")
		return &failure{code: noModel, status: 404}
	}
	c.spec = spec
	return nil
}

// complaint describes an error in a request, without its content.
func (f *failure) complaint() string {
	switch f.code {
	case noKey:
		return "no key where it belongs"
	case badKey:
		return "the key is not known"
	case badSignature:
		return "the signature does not match: " + f.message
	case broke:
		return "the account has no money left"
	}
	if f.param != "" {
		return "refused because of " + f.param
	}
	return f.message
}

// wrongBody checks common rules of all families.
func (p *Provider) wrongBody(c *call) *failure {
	if c.r.Method == http.MethodGet {
		return nil
	}
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return bad("content-type", "the content type must be application/json")
	}
	if !json.Valid(c.body) {
		return bad("", "the request body is not valid JSON")
	}
	return nil
}

// leaks records headers that a gateway could add, but no client of a provider sends.
func (p *Provider) leaks(c *call) {
	for name := range c.r.Header {
		if strings.HasPrefix(name, "X-Weir-") || strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" {
			p.violate(c, "the field %s tells of a gateway", name)
		}
	}
}

// admit takes the call's units from the limits of its key and model, and creates the answer.
func (p *Provider) admit(c *call) *failure {
	if c.free {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	g, h := p.meter(c, now).admit(now, p.clock.Wall(now), c)
	if h != nil {
		return &failure{code: throttled, status: 429, hit: h, hint: h.wait}
	}
	c.grant = g
	c.at.Granted, c.at.Reserved, c.at.GrantedAt = true, g.reserved, now-p.begun
	return nil
}

// meter returns the state of the call's key and model.
func (p *Provider) meter(c *call, now time.Duration) *meter {
	k := meterKey{key: c.key, model: c.model}
	m, ok := p.meters[k]
	if !ok {
		l := c.spec.Limits
		if own := p.c.Keys[c.key].Limits[c.model]; own != nil {
			l = *own
		}
		m = newMeter(l, now)
		p.meters[k] = m
	}
	return m
}

// fail refuses a call.
func (p *Provider) fail(w http.ResponseWriter, c *call, d dialect, f *failure, o Outcome) {
	if f.code == throttled && !f.noHint {
		p.limits(c, f.m, w.Header())
	}
	w.Header().Set("Content-Type", "application/json")
	status, body := d.refuse(c, f, w.Header())
	p.mu.Lock()
	c.at.Outcome, c.at.Status, c.at.Reason = o, status, f.reason()
	p.mu.Unlock()
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have disconnected; the record has the intended response
}

// reason returns the reason of a refusal in a few words.
func (f *failure) reason() string {
	if f.hit == nil {
		return f.complaint()
	}
	return f.hit.unit + " per " + f.hit.period()
}

// period returns the limit's period, as a word if there is one.
func (h *hit) period() string {
	words := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}
	switch word, ok := words[h.per]; {
	case h.day:
		return "day"
	case ok:
		return word
	}
	return h.per.String()
}

// limits writes the headers of m, or of the call's meter.
func (p *Provider) limits(c *call, m *meter, h http.Header) {
	if c.free {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if m == nil {
		m = p.meter(c, now)
	}
	switch c.family {
	case llm.OpenAI, llm.Responses:
		limitsOpenAI(m, now, h)
	case llm.Anthropic:
		limitsAnthropic(m, now, p.clock.Wall(now), h)
	}
}

func (c *call) elapsed() time.Duration { return c.p.clock.Now() - c.begun }

// sleep waits. It returns false if the caller disconnects meanwhile.
func (c *call) sleep(d time.Duration) bool {
	ctx := c.r.Context()
	if d > 0 {
		_ = c.p.clock.Sleep(ctx, d) // the context has the error
	}
	return ctx.Err() == nil
}

// gone records that the caller has disconnected.
func (c *call) gone() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.at.Outcome, c.at.Left = Left, true
}
