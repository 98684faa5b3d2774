// Package learn infers the actual limits of an upstream from past calls, and writes them as a change of weir.yaml
// that an operator reviews and applies. It does not change the file.
//
// An upstream that throttles is at its limit. Between one throttle and a later one, it accepts what its limit
// supplies in that time, regardless of the limit's form. So rates are read between throttles, and the burst is the usage
// beyond that rate before throttles begin. Without throttles, only the accepted usage is known.
//
// Single calls come from weir's log of attempts (Logs), steps of time from metrics (CloudWatch, Prometheus). Memory
// is bounded for any amount of data.
package learn

import (
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Call is one attempt at an upstream.
type Call struct {
	At        time.Time // send time
	Upstream  string
	Operation string // "" if unknown
	Keys      string // "scope=value", separated by commas
	Class     outcome.Class
	Tokens    int64
	Took      time.Duration
	Metered   bool // reports only Tokens of an attempt that was already reported
}

// A Step summarizes a span of time that its source does not divide further.
type Step struct {
	At        time.Time // start of the step
	Long      time.Duration
	Upstream  string
	Operation string
	Taken     float64 // attempts that were not throttled
	Throttled float64
	Tokens    float64
	Busy      time.Duration // total duration of the attempts
}

// Limits of the stored data. Calls beyond them count only for their upstream.
const (
	mostUpstreams = 64
	mostOfScope   = 48      // separately recorded values of a scope, and operations
	mostParts     = 512     // of all scopes and upstreams together
	mostWaiting   = 1 << 16 // calls that wait for earlier calls, because a log is ordered by the end of calls
)

// A Learner records calls. It is not safe for concurrent use.
type Learner struct {
	upstreams map[string]*upstream
	others    int64 // calls of upstreams beyond mostUpstreams
	order     order
	parts     int   // number of separate estimates
	now       int64 // time of the latest counted call, in nanoseconds
}

// New returns a Learner without calls.
func New() *Learner { return &Learner{upstreams: make(map[string]*upstream)} }

// An upstream is what is known about one upstream.
type upstream struct {
	name    string
	calls   *estimate
	tokens  *estimate                       // nil until a call reports tokens
	parts   map[string]map[string]*estimate // by scope, or "" for operations, then by value
	crowd   map[string]bool                 // scopes with too many values
	steps   map[string]*steps               // by operation; "" means all
	refused map[string]int64                // refusals by weir's own limits
	dry     int64                           // time of the latest throttle
	inDry   [2]float64                      // calls shortly after a throttle: accepted, throttled
}

// of returns the named upstream. It returns nil if there are too many upstreams.
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

// Call records a call. Calls may be slightly out of order.
func (l *Learner) Call(c Call) {
	if c.Upstream == "" {
		return
	}
	l.order.push(c)
	if len(l.order) > mostWaiting {
		l.count(l.order.pop())
	}
}

// Break separates later calls from earlier ones, because a clock was set.
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

// count counts a call. It treats a call that is earlier than the previous one as simultaneous.
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

// parts yields the operation and the keys of a call, by which calls can be counted separately.
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

// part returns the estimate of a scope's value. It returns nil if there are too many.
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

// Refused records the number of calls that weir refused because of a limit.
func (l *Learner) Refused(upstream, limit string, n int64) {
	u := l.of(upstream)
	if u == nil || limit == "" || len(u.refused) >= mostOfScope && u.refused[limit] == 0 {
		return
	}
	u.refused[limit] += n
}

// Step records a step. The steps of an upstream and operation must be in order.
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

// names returns the names of all upstreams, sorted.
func (l *Learner) names() (all []string) {
	for name := range l.upstreams {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// An order is a heap of calls. It returns the earliest call first.
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
