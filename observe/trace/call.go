package trace

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Call is the state of a request in progress, or of a call that the program makes for itself. It has the trace that the request
// belongs to, and the results of the calls made for it. Each of these calls has the Call, or a Part of it, in weir.Call.Note. The
// methods of a nil Call do nothing. A Call is safe for concurrent use.
type Call struct {
	t   *Tracer
	top *Call // the Call that this is a Part of; nil if it is not a Part

	trace   ID
	span    SpanID
	parent  SpanID
	state   string // tracestate
	sampled bool   // the early decision
	local   bool   // the parent belongs to this program
	lasts   bool   // see Lasting
	lone    bool   // exactly one call of weir belongs to it, and ends it
	began   time.Time
	about   About

	n        atomic.Int32     // attempts
	statuses [6]atomic.Uint32 // statuses of the first three and the last three responses; a late response may still be stored
	fields   [2][1]string     // header values of the first attempt

	mu    sync.Mutex
	said  *said  // nil without notes and steps
	parts []part // calls to keep
	why   int    // the most important reason of the parts
	other *other // the answer from another source than the first call; nil if there is none
	ended bool   // later calls are kept separately
}

// About describes a request, without secrets.
type About struct {
	Kind   Kind   // 0 means Internal
	Name   string // of the span
	Method string // "" if it is not HTTP
	Route  string // the route of the request; "" if there are none
}

// Begin begins a trace or continues that of its parent.
func (t *Tracer) Begin(parent Parent, about About) *Call {
	if t == nil {
		return nil
	}
	c := t.begin(parent, about)
	switch {
	case parent.Said && (t.o.Trust || !parent.Sampled): // any caller may request that the trace is not kept
		c.sampled = parent.Sampled
	default:
		c.sampled = t.sample(c.began)
	}
	return c
}

// begin is Begin without the sampling decision.
func (t *Tracer) begin(parent Parent, about About) *Call {
	c := &Call{t: t, trace: parent.Trace, parent: parent.Span, state: parent.State, about: about, began: time.Now(), why: none}
	if c.trace == (ID{}) {
		c.trace = newID(c.began)
	}
	c.span = newSpanID()
	return c
}

// Request begins the call for a request that this program received. route is "" if there are no routes.
func (t *Tracer) Request(r *http.Request, name, route string) *Call {
	if t == nil {
		return nil
	}
	return t.Begin(readParent(r.Header, t.o.XRay), About{Kind: Server, Name: name, Method: r.Method, Route: route})
}

// Joins is Begin within the trace in the fields of a message: HTTP headers, which may have been stored for days, or gRPC
// metadata.
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

// Decision returns the weir.Call.Note of a call that weir only decides: the program that sent the request makes the call and
// reports its result later. The call is a span in that program's trace. The report ends the span, so End is not needed. Decision
// returns nil without tracing.
func (t *Tracer) Decision(r *http.Request, name string) any {
	if t == nil {
		return nil
	}
	c := t.Request(r, name, "")
	c.lone, c.about.Method = true, "" // the method of this request is not that of the call
	return c
}

// Part returns one of several calls made for a request, such as a tier of a cascade.
func (c *Call) Part(name string) *Call {
	if c == nil {
		return nil
	}
	return &Call{
		t: c.t, top: c, trace: c.trace, span: newSpanID(), parent: c.span, state: c.state,
		sampled: c.sampled, began: time.Now(), about: About{Name: name, Method: c.about.Method}, why: none,
	}
}

// Trace returns the ID of the call's trace.
func (c *Call) Trace() ID {
	if c == nil {
		return ID{}
	}
	return c.trace
}

// An Attempt is one attempt of a call. An attempt of a nil Call does nothing.
type Attempt struct {
	c *Call
	n int // from 1
}

// Next returns the next attempt.
func (c *Call) Next() Attempt {
	if c == nil {
		return Attempt{}
	}
	return Attempt{c, int(c.n.Add(1))}
}

// First reports whether this is the first attempt.
func (a Attempt) First() bool { return a.n <= 1 }

func (a Attempt) span() SpanID { return a.c.span.attempt(a.n) }

// Header adds the trace to the header of the attempt's request. Fields that the caller has signed are not changed.
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

// Within adds the span of the call itself to the header of a request that will be sent later.
func (c *Call) Within(h http.Header) {
	if c == nil {
		return
	}
	var room [128]byte
	h[parentField] = []string{string(appendParent(room[:0], c.trace, c.span, c.sampled))}
}

// put sets a field. The first attempt uses memory of the call. Later attempts allocate, because the headers of earlier ones may
// still be read.
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

// Answered records the status of the attempt's response.
func (a Attempt) Answered(status int) {
	if a.c == nil || a.n < 1 {
		return
	}
	a.c.statuses[placeOf(a.n)].Store(uint32(status))
}

// placeOf returns the index of an attempt in arrays that, like a Record, hold the first three and the last three.
func placeOf(n int) int {
	if n <= 3 {
		return n - 1
	}
	return 3 + (n-4)%3
}

// adds adds a call made for this one. It returns false if the request has ended.
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

// An Answer is the result of a request.
type Answer struct {
	Status int   // of the response; 0 if there was none
	Err    error // why the response broke off or is missing

	Refused bool // refused by weir itself, without a call; kept like a refused call
}

// End ends a request and decides whether its trace is kept. A request with an error that none of its calls has is kept as failed.
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
		for i := range parts { // only now is the use of their answers known
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

// whole keeps a call that is the only one of c.
func (t *Tracer) whole(p part, c *Call, why int) {
	t.queue.put(&story{
		trace: c.trace, span: c.span, parent: c.parent, state: c.state, remote: c.parent != SpanID{}, about: c.about,
		began: c.began, ended: p.began.Add(p.took), why: why, late: !c.sampled, parts: []part{p},
	})
}

// alone keeps a call without a trace of a request, or one whose request has ended.
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
