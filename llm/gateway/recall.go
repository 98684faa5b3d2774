package gateway

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/observe/trace"
)

// keyed returns the answer's cache key, or nil if the answer is not cached.
func (c *conduct) keyed() *cache.Key {
	x := c.x
	if !x.keeps() {
		return nil
	}
	return &cache.Key{Tenant: x.whose + "\n" + x.keys[Credential], Route: x.d.o.Name + "\n" + x.apart(c.r, c.header()), Model: x.request.Model, Hash: x.question()}
}

func (x *exchange) question() [32]byte {
	if x.hash != nil {
		return *x.hash
	}
	if x.d.o.Loose {
		return x.request.LooseKey()
	}
	return x.request.Key()
}

// keeps reports whether the answer may be cached. Requests to another tier are not cached, because no other request
// looks up that key. Requests with trailers, which arrive after the lookup, and requests whose answer depends on the
// provider's state are also excluded. So are requests with AWS signatures that weir cannot verify: an access key ID is
// not a secret.
func (x *exchange) keeps() bool {
	q := x.request
	if x.d.o.Cache == nil || q == nil || !x.route.Generates || x.nested || x.trailed || x.unsure || q.Stateful {
		return false
	}
	return q.Temperature == nil || *q.Temperature <= 0 || x.d.o.Any
}

// recall returns the cached answer, or nil if there is none that may be used now.
func (c *conduct) recall() *http.Response {
	if c.x.key = c.keyed(); c.x.key == nil || !c.x.fresh {
		return nil
	}
	s := begins(c.r.Context(), "cache")
	c.held, c.state, c.age = c.x.d.o.Cache.Get(c.r.Context(), c.start, *c.x.key)
	confidence := 1.0
	if c.resemble(); c.near > 0 {
		confidence = c.near
	}
	s.ends(trace.Text(trace.AttrCache, c.found()))
	if c.state != cache.Hit && (c.state != cache.Stale || c.near > 0) {
		return nil
	}
	resp := c.replay(c.held, cascade.Turn{Tier: cached, Confidence: confidence}, false)
	if resp == nil {
		c.state, c.near = cache.Miss, 0
		return nil
	}
	if c.state == cache.Stale && !c.x.d.closed() && c.unpaid == nil {
		c.x.renews = true
		c.x.d.o.Cache.Refresh(*c.x.key, c.refresh)
	}
	c.replayed = true
	c.announce(resp, cascade.Result[*http.Response]{Tier: cached, Confidence: confidence})
	return resp
}

// resemble looks for the cached answer to a similar question if there is no usable answer to this one. A similar answer
// that is no longer fresh is only for the cache tier, and only if there is no old answer to this question.
func (c *conduct) resemble() {
	x := c.x
	if x.d.o.Similar == nil || c.state == cache.Hit || c.state == cache.Stale {
		return
	}
	q := x.wording()
	if q == nil {
		return
	}
	key, near, ok := x.d.o.Similar.Find(c.start, *x.key, q.rest, q.text, answers.Accepted(x.language)...)
	if !ok {
		return
	}
	held, state, age := x.d.o.Cache.Peek(c.start, key)
	if state == cache.Hit || state != cache.Miss && c.state == cache.Miss {
		c.held, c.state, c.age, c.near = held, state, age, near
	}
}

// found returns the result of the cache lookup.
func (c *conduct) found() string {
	if c.near > 0 {
		return Similar
	}
	return c.state.String()
}

// Similar is the cache result for an answer to a similar question.
const Similar = "similar"

// A wording is a question that can share an answer with similar questions. See llm.Request.Similar.
type wording struct {
	rest [32]byte
	text string
}

// wording returns the request's wording, or nil if the question depends on the rest of the request.
func (x *exchange) wording() *wording {
	if x.d.o.Similar == nil || x.worded {
		return x.words
	}
	x.worded = true
	if rest, text, ok := x.request.Similar(); ok && len(text) <= answers.MaxAsked {
		x.words = &wording{rest, text}
	}
	return x.words
}

// cached is the name of the cache's tier.
const cached = "cached"

// Metadata of a cache entry.
const (
	form  = "form" // see exchange.form
	text  = "text" // the answer's text, if it contains nothing else
	model = "model"
)

// form returns the format that the request asks for, for an answer that is streamed or not. A cached answer in another
// format must be rewritten.
func (x *exchange) form(streamed bool) string {
	f := "whole"
	if streamed {
		f = "stream"
		if x.request.ReportsUsage && !x.request.AddedUsage {
			f += " with usage"
		}
		if x.array {
			f = "array"
		}
	}
	return f
}

// replay returns a cached answer in the format that the caller asked for, marked with its tier. It returns nil if the
// answer cannot be written in that format.
func (c *conduct) replay(e cache.Entry, turn cascade.Turn, degraded bool) *http.Response {
	q, meta := c.x.request, c.x.d.meta(turn, degraded)
	var resp *http.Response
	if e.Meta[form] == c.x.form(q.Stream) {
		h := http.Header(e.Header).Clone()
		if h == nil {
			h = make(http.Header)
		}
		resp = made(h, q.Mark(e.Body, meta))
	} else {
		said, ok := e.Meta[text]
		if !ok {
			return nil
		}
		header, body := q.Answer(llm.Answer{Text: said, Model: e.Meta[model], Meta: meta})
		if header == nil {
			return nil
		}
		resp = made(header, body)
	}
	resp.Header.Set(ageHeader, strconv.FormatInt(int64(c.age/time.Second), 10))
	return resp
}

// refresh calls the model again, with a lower priority than all waiting callers.
func (c *conduct) refresh(ctx context.Context) (cache.Entry, error) {
	progress := &progress{keep: true, of: c.x}
	path, query, body := c.x.request.For("")
	resp, _, err := c.send(progress.in(ctx), httpx.Request{Path: path, Query: query, Header: c.header(), Body: body, Priority: limit.Low})
	if err != nil {
		return cache.Entry{}, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if e := progress.entry.Load(); e != nil {
		return *e, nil
	}
	if err == nil {
		err = errNotKept
	}
	return cache.Entry{}, err
}
