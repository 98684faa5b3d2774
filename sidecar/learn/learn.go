// Package learn finds out of what happened which limits an upstream really has, and writes them as a change of
// weir.yaml that a person reads and applies. It changes nothing by itself.
//
// An upstream that throttles is at its limit: what it takes between one throttle and a later one is what its limit
// gave in that time, whatever the limit is called. So rates are read between throttles, and the burst is what went
// beyond that rate before throttles began. Where nothing was throttled nothing is known but what held.
//
// Calls come from weir's log of attempts (Logs), whole steps of time from metrics (CloudWatch, Prometheus).
// Memory is bounded however much is read.
package learn

import (
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Call is one attempt at an upstream.
type Call struct {
	At        time.Time // when it was sent
	Upstream  string
	Operation string // "" if that is not known
	Keys      string // "scope=value", commas between
	Class     outcome.Class
	Tokens    int64
	Took      time.Duration
	Metered   bool // tells of Tokens alone: the attempt itself was told of before
}

// A Step is all that happened in a span of time which its source does not divide.
type Step struct {
	At        time.Time // its beginning
	Long      time.Duration
	Upstream  string
	Operation string
	Taken     float64 // attempts that were not throttled
	Throttled float64
	Tokens    float64
	Busy      time.Duration // time that attempts took, all together
}

// Bounds of what is kept. Beyond them calls count for their upstream alone.
const (
	mostUpstreams = 64
	mostOfScope   = 48      // values of a scope, and operations, that are looked at apart
	mostParts     = 512     // of all scopes and upstreams together
	mostWaiting   = 1 << 16 // calls that wait for earlier ones; a log has them in the order in which they ended
)

// A Learner takes what happened. It is not safe for concurrent use.
type Learner struct {
	upstreams map[string]*upstream
	others    int64 // calls of upstreams for which there was no room
	order     order
	parts     int   // that are looked at apart
	now       int64 // the latest call that was counted, in nanoseconds
}

// New is a learner that knows nothing.
func New() *Learner { return &Learner{upstreams: make(map[string]*upstream)} }

// An upstream is what is known of one.
type upstream struct {
	name    string
	calls   *estimate
	tokens  *estimate                       // nil as long as no call told of any
	parts   map[string]map[string]*estimate // by scope, or "" for operations, then by value
	crowd   map[string]bool                 // scopes with more values than are looked at
	steps   map[string]*steps               // by operation; "" for all
	refused map[string]int64                // by weir's own limits
	dry     int64                           // the latest throttle
	inDry   [2]float64                      // such calls: taken, throttled
}

// of is the upstream of a name, nil if there are too many.
func (l *Learner) of(name string) *upstream {
	u := l.upstreams[name]
	if u == nil && len(l.upstreams) < mostUpstreams {
		u = &upstream{name: name, calls: new(estimate), parts: make(map[string]map[string]*estimate), crowd: make(map[string]bool), steps: make(map[string]*steps), refused: make(map[string]int64)}
		l.upstreams[name] = u
	}
	if u == nil {
		l.others++
	}
	return u
}

// Call takes a call. Calls may come somewhat out of order.
func (l *Learner) Call(c Call) {
	if c.Upstream == "" {
		return
	}
	l.order.push(c)
	if len(l.order) > mostWaiting {
		l.count(l.order.pop())
	}
}

// Break says that what comes next stands apart from what came: a clock was set.
func (l *Learner) Break() {
	l.flush()
	l.now = 0
	for _, u := range l.upstreams {
		u.dry = 0
		for _, e := range u.estimates() {
			e.rest()
		}
	}
}

func (l *Learner) flush() {
	for len(l.order) > 0 {
		l.count(l.order.pop())
	}
}

// count counts a call, which is later than those before or taken for as late.
func (l *Learner) count(c Call) {
	at := max(c.At.UnixNano(), l.now)
	l.now = at
	u := l.of(c.Upstream)
	if u == nil {
		return
	}
	if c.Tokens > 0 && u.tokens == nil {
		u.tokens = new(estimate)
	}
	if c.Metered {
		if u.tokens != nil {
			u.tokens.take(at, float64(c.Tokens), 0)
		}
		return
	}
	throttled := c.Class == outcome.Throttled
	dry := u.dry != 0 && at-u.dry < int64(time.Second)
	if dry {
		u.inDry[kind(throttled)]++
	}
	if u.tokens != nil {
		u.tokens.add(at, throttled, float64(c.Tokens), c.Took)
	}
	u.calls.add(at, throttled, 1, c.Took)
	for scope, value := range parts(c) {
		if e := l.part(u, scope, value); e != nil {
			e.add(at, throttled, 1, c.Took)
			if dry {
				e.inDry[kind(throttled)]++
			}
		}
	}
	if throttled {
		u.dry = at
	}
}

func kind(throttled bool) int {
	if throttled {
		return 1
	}
	return 0
}

// parts yields what a call can be told from others by: its operation, and its keys.
func parts(c Call) func(yield func(scope, value string) bool) {
	return func(yield func(string, string) bool) {
		if c.Operation != "" && !yield("", c.Operation) {
			return
		}
		for one := range strings.SplitSeq(c.Keys, ",") {
			scope, value, ok := strings.Cut(one, "=")
			if ok && scope != "" && !yield(scope, value) {
				return
			}
		}
	}
}

// part is what is known of a value of a scope, nil if there are too many.
func (l *Learner) part(u *upstream, scope, value string) *estimate {
	of := u.parts[scope]
	if of == nil {
		if len(u.parts) > 8 {
			return nil
		}
		of = make(map[string]*estimate)
		u.parts[scope] = of
	}
	e := of[value]
	if e == nil && len(of) < mostOfScope && l.parts < mostParts {
		l.parts++
		e = new(estimate)
		of[value] = e
	}
	if e == nil {
		u.crowd[scope] = true
	}
	return e
}

func (u *upstream) estimates() (all []*estimate) {
	all = append(all, u.calls)
	if u.tokens != nil {
		all = append(all, u.tokens)
	}
	for _, of := range u.parts {
		for _, e := range of {
			all = append(all, e)
		}
	}
	return all
}

// Refused takes how many calls weir itself has refused for a limit.
func (l *Learner) Refused(upstream, limit string, n int64) {
	u := l.of(upstream)
	if u == nil || limit == "" || len(u.refused) >= mostOfScope && u.refused[limit] == 0 {
		return
	}
	u.refused[limit] += n
}

// Step takes a step. Those of an upstream and an operation come in order.
func (l *Learner) Step(s Step) {
	if s.Upstream == "" || s.Long <= 0 {
		return
	}
	u := l.of(s.Upstream)
	if u == nil {
		return
	}
	of := u.steps[s.Operation]
	if of == nil {
		if len(u.steps) > mostOfScope {
			return
		}
		of = new(steps)
		u.steps[s.Operation] = of
	}
	of.add(s)
}

// names are those of all upstreams, in order.
func (l *Learner) names() (all []string) {
	for name := range l.upstreams {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// An order gives calls back by when they were sent, the earliest first: a heap.
type order []Call

func (o *order) push(c Call) {
	h := append(*o, c)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].At.Before(h[up].At) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*o = h
}

func (o *order) pop() Call {
	h := *o
	first, n := h[0], len(h)-1
	h[0], h[n] = h[n], Call{}
	h = h[:n]
	for i := 0; ; {
		low := 2*i + 1
		if low >= n {
			break
		}
		if low+1 < n && h[low+1].At.Before(h[low].At) {
			low++
		}
		if !h[low].At.Before(h[i].At) {
			break
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
	*o = h
	return first
}
