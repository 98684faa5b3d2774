package trace

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Call is what is known of a request while it is under way, or of a call of the program's own: the trace that it
// belongs to, and what has become of the calls that were made for it, each with itself, or a Part of it, in
// weir.Call.Note. The methods of a nil Call do nothing.
type Call struct {
	t   *Tracer
	top *Call // that this is a part of; nil if it is none

	trace   ID
	span    SpanID
	parent  SpanID
	state   string // tracestate
	sampled bool   // early
	local   bool   // the parent is this program's own
	lasts   bool   // see Lasting
	lone    bool   // one call of weir is all there is of it, and ends it
	began   time.Time
	about   About

	n        atomic.Int32     // attempts
	statuses [6]atomic.Uint32 // of the answers to the first and the last three; one may come when nobody waits for it any more
	fields   [2][1]string     // what the header of the first attempt has

	mu    sync.Mutex
	said  *said  // nil if nothing was noted
	parts []part // that are worth keeping
	why   int    // of those, the most important
	other *other // that answered in the place of the first call; nil if none did
	ended bool   // what comes yet is kept by itself
}

// About is what a request is, as far as it is no secret.
type About struct {
	Kind   Kind   // 0 means Internal
	Name   string // of the span
	Method string // "" if it is not of HTTP
	Route  string // that a request came by; "" if there are none
}

// Begin begins a trace, or goes on with that of its parent.
func (t *Tracer) Begin(parent Parent, about About) *Call {
	if t == nil {
		return nil
	}
	c := t.begin(parent, about)
	switch {
	case parent.Said && (t.o.Trust || !parent.Sampled): // that it is not to be kept may be said by anybody
		c.sampled = parent.Sampled
	default:
		c.sampled = t.sample(c.began)
	}
	return c
}

// begin is Begin without a decision.
func (t *Tracer) begin(parent Parent, about About) *Call {
	c := &Call{t: t, trace: parent.Trace, parent: parent.Span, state: parent.State, about: about, began: time.Now(), why: none}
	if c.trace == (ID{}) {
		c.trace = newID(c.began)
	}
	c.span = newSpanID()
	return c
}

// Request is Begin of a request that came to this program, by a route; "" if there are none.
func (t *Tracer) Request(r *http.Request, name, route string) *Call {
	if t == nil {
		return nil
	}
	return t.Begin(readParent(r.Header, t.o.XRay), About{Kind: Server, Name: name, Method: r.Method, Route: route})
}

// Joins is Begin within the trace that the fields of a message tell of: of a header of HTTP, which may have been kept for days, or of
// the metadata of gRPC.
func (t *Tracer) Joins(fields map[string][]string, about About) *Call {
	if t == nil {
		return nil
	}
	p := readParent(fields, t.o.XRay)
	if p.Trace == (ID{}) {
		p = readNamed(fields, t.o.XRay, parentKey, stateKey, xrayKey)
	}
	return t.Begin(p, about)
}

// Decision is what to give as weir.Call.Note to a call that is decided for the program that sent the request, and reported by it
// later: it is a span in that program's trace, which ends with the report, and wants no End. It is nil if nothing is traced.
func (t *Tracer) Decision(r *http.Request, name string) any {
	if t == nil {
		return nil
	}
	c := t.Request(r, name, "")
	c.lone, c.about.Method = true, "" // the method is not that of what is decided about
	return c
}

// Part is one of several calls that are made for a request, such as a tier of a cascade.
func (c *Call) Part(name string) *Call {
	if c == nil {
		return nil
	}
	return &Call{
		t: c.t, top: c, trace: c.trace, span: newSpanID(), parent: c.span, state: c.state,
		sampled: c.sampled, began: time.Now(), about: About{Name: name, Method: c.about.Method}, why: none,
	}
}

// Trace is the ID of the call's trace.
func (c *Call) Trace() ID {
	if c == nil {
		return ID{}
	}
	return c.trace
}

// An Attempt is one attempt of a call. That of a nil Call does nothing.
type Attempt struct {
	c *Call
	n int // from 1
}

// Next is the next attempt.
func (c *Call) Next() Attempt {
	if c == nil {
		return Attempt{}
	}
	return Attempt{c, int(c.n.Add(1))}
}

// First reports whether there was no attempt before.
func (a Attempt) First() bool { return a.n <= 1 }

// span is the ID of the attempt's span.
func (a Attempt) span() SpanID { return a.c.span.attempt(a.n) }

// Header says in the header of a request that the attempt sends which trace it belongs to. What the caller has signed
// stays as it is.
func (a Attempt) Header(h http.Header) {
	c := a.c
	if c == nil {
		return
	}
	fixed := signed(h)
	var room [128]byte
	a.put(h, fixed, 0, parentField, appendParent(room[:0], c.trace, a.span(), c.sampled))
	if c.t.o.XRay {
		a.put(h, fixed, 1, xrayField, appendXRay(room[:0], c.trace, a.span(), c.sampled))
	}
	switch {
	case has(fixed, stateField):
	case c.state == "":
		delete(h, stateField)
	case len(h[stateField]) != 1 || h[stateField][0] != c.state:
		h[stateField] = []string{c.state}
	}
}

// Within says in the header of a request that is to be sent later which span it belongs to: that of the call itself.
func (c *Call) Within(h http.Header) {
	if c == nil {
		return
	}
	var room [128]byte
	h[parentField] = []string{string(appendParent(room[:0], c.trace, c.span, c.sampled))}
}

// put sets one field, in the call's own memory if it is the first attempt's: those of earlier attempts may still be
// read.
func (a Attempt) put(h http.Header, fixed string, i int, name string, value []byte) {
	switch {
	case has(fixed, name):
	case a.n == 1:
		f := &a.c.fields[i]
		f[0] = string(value)
		h[name] = f[:1:1]
	default:
		h[name] = []string{string(value)}
	}
}

// Answered notes the status of the attempt's answer.
func (a Attempt) Answered(status int) {
	if a.c == nil || a.n < 1 {
		return
	}
	a.c.statuses[placeOf(a.n)].Store(uint32(status))
}

// placeOf is where what there is of an attempt is kept: of the first and the last three there is room, as in a Record.
func placeOf(n int) int {
	if n <= 3 {
		return n - 1
	}
	return 3 + (n-4)%3
}

// adds adds a call that was made for this one. It reports false if that is too late.
func (c *Call) adds(p part, why int) bool {
	top := c.top
	if top == nil {
		top = c
	}
	top.mu.Lock()
	defer top.mu.Unlock()
	if top.ended {
		return false
	}
	top.parts, top.why = append(top.parts, p), min(top.why, why)
	return true
}

// An Answer is how a request ended.
type Answer struct {
	Status int   // of the answer; 0 if there was none
	Err    error // why it broke off, or there is none

	Refused bool // by weir, and not by a call that was made for it: such are kept as refused calls are
}

// End is the end of a request, when its trace is kept or not. A request that brought an error of its own, and not of
// the calls that were made for it, is kept as one that failed.
func (c *Call) End(a Answer) {
	if c == nil {
		return
	}
	c.mu.Lock()
	parts, why, other := c.parts, c.why, c.other
	c.parts, c.ended = nil, true
	c.mu.Unlock()
	switch {
	case a.Err != nil:
		why = failed
	case a.Refused:
		if c.t.refusals.takes(time.Duration(time.Now().UnixNano())) {
			why = refused
		}
	case why == none && c.sampled:
		why = sampled
	}
	if why != none {
		notes, steps := c.noted()
		by := other.result(parts)
		for i := range parts { // only now it is known what their answers have used
			parts[i].notes, parts[i].steps = parts[i].of.noted()
			parts[i].of = nil
		}
		c.t.queue.put(&story{
			other: other != nil, class: by,
			trace: c.trace, span: c.span, parent: c.parent, state: c.state, remote: !c.local && c.parent != SpanID{},
			about: c.about, began: c.began, ended: time.Now(), status: a.Status, failure: failureOf(a.Err),
			why: why, late: !c.sampled, parts: parts, notes: other.noted(notes), steps: steps,
		})
	}
}

// whole keeps a call that is all there is of c.
func (t *Tracer) whole(p part, c *Call, why int) {
	t.queue.put(&story{
		trace: c.trace, span: c.span, parent: c.parent, state: c.state, remote: c.parent != SpanID{}, about: c.about,
		began: c.began, ended: p.began.Add(p.took), why: why, late: !c.sampled, parts: []part{p},
	})
}

// alone keeps a call of its own: one that nobody has told a trace of, or one whose request has ended.
func (t *Tracer) alone(p part, c *Call, why int) {
	s := &story{why: why, began: p.began, ended: p.began.Add(p.took)}
	if c != nil {
		s.trace, s.span, s.parent, s.state, s.late = c.trace, newSpanID(), c.span, c.state, !c.sampled
		p.parent, s.about = SpanID{}, p.about
		p.notes, p.steps = p.of.noted()
		p.of = nil
	} else {
		s.trace, s.span, s.late = newID(p.began), newSpanID(), true
		p.span = s.span
	}
	s.parts = []part{p}
	t.queue.put(s)
}
