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

// keyed is the key under which the answer is kept, nil if it is not.
func (c *conduct) keyed() *cache.Key {
	x := c.x
	if !x.keeps() {
		return nil
	}
	return &cache.Key{Tenant: x.whose + "\n" + x.keys[Credential], Route: x.d.o.Name + "\n" + x.apart(c.r, c.header()), Model: x.request.Model, Hash: x.question()}
}

// question is the hash of what is asked.
func (x *exchange) question() [32]byte {
	if x.hash != nil {
		return *x.hash
	}
	if x.d.o.Loose {
		return x.request.LooseKey()
	}
	return x.request.Key()
}

// keeps reports whether the answer may be kept. What is said in the place of another answer
// is not: nobody else would ask for it in the same way. Trailers come too late to be told apart,
// what a provider keeps may have changed, and who signs for AWS is known to AWS alone: an access
// key id is no secret.
func (x *exchange) keeps() bool {
	q := x.request
	if x.d.o.Cache == nil || q == nil || !x.route.Generates || x.nested || x.trailed || x.unsure || q.Stateful {
		return false
	}
	return q.Temperature == nil || *q.Temperature <= 0 || x.d.o.Any
}

// recall is the answer that the cache has, nil if it has none that may be used now.
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

// resemble looks for the kept answer to a question like this one, if there is none to it that may be given now. One that
// is no longer fresh is for the tier of the cache alone, and only if there is no other.
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

// found is what the cache had, in a word.
func (c *conduct) found() string {
	if c.near > 0 {
		return Similar
	}
	return c.state.String()
}

// Similar is what the cache had if that is the answer to another question, which is like the one that was asked.
const Similar = "similar"

// A wording is a question for which another one like it may have the answer: llm.Request.Similar.
type wording struct {
	rest [32]byte
	text string
}

// wording is that of the request, nil if its question does not stand alone.
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

// cached is the name of the tier that the cache is.
const cached = "cached"

// What an entry knows of its answer.
const (
	form  = "form" // see exchange.form
	text  = "text" // what it says, if that is all there is to it
	model = "model"
)

// form is the form of the answer that the request asks for; streamed is whether the answer
// is a stream. An answer in another form than that asked for is not given as it is.
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

// replay is an answer that was kept, in the form that the caller asked for, and says of which tier it is; nil if
// it cannot have that form.
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

// refresh asks the model anew, after all those who wait for an answer.
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
