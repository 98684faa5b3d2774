package decide

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// own holds the breakers of callers whose reports affect only their own calls. Each caller has one per upstream, with
// the upstream's rules.
type own struct {
	mu     sync.Mutex
	groups map[string]*group // by upstream
}

type group struct {
	of     *weir.Upstream
	rules  breaker.Config
	groups *breaker.Group
}

// breaker returns a caller's breaker for an upstream.
func (o *own) breaker(u *weir.Upstream, caller string) *breaker.Breaker {
	rules := u.Policy().Breaker
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.groups == nil {
		o.groups = make(map[string]*group)
	}
	g := o.groups[u.Name()]
	if g == nil || g.of != u {
		g = &group{u, rules, breaker.NewGroup(0, rules, nil)}
		o.groups[u.Name()] = g
	}
	if g.rules != rules {
		g.rules = rules
		g.groups.SetConfig(u.Now(), rules)
	}
	return g.groups.For(u.Now(), caller)
}

// A ticket is a call's permit from its caller's own breaker. The zero ticket means no breaker.
type ticket struct {
	of     *breaker.Breaker
	permit breaker.Ticket
}

// admit asks the caller's own breaker.
func (a *asker) admit() (ticket, *refuse.Facts) {
	if a.rights.believed() {
		return ticket{}, nil
	}
	t := ticket{of: a.s.own.breaker(a.u, a.caller)}
	var wait time.Duration
	var ok bool
	if t.permit, wait, ok = t.of.Admit(a.u.Now()); ok {
		return t, nil
	}
	return ticket{}, a.refusal(&weir.Refusal{Upstream: a.u.Name(), Operation: a.about().Operation, Reason: weir.CircuitOpen, RetryAfter: wait})
}

// report reports the result of the call to the breaker. again means that another attempt of the call follows, whose
// result counts instead of this one.
func (t ticket) report(u *weir.Upstream, o outcome.Outcome, again bool) {
	if t.of == nil {
		return
	}
	if again && !t.permit.Probe && o.Class != outcome.OK {
		o = outcome.Outcome{Class: outcome.Canceled}
	}
	t.of.Report(u.Now(), t.permit, o)
}

// pool returns what a hint pauses if it affects only the caller's own calls: calls with the same keys.
func (q *acquireRequest) pool(caller string) string {
	var b strings.Builder
	b.WriteString(caller)
	for _, scope := range slices.Sorted(maps.Keys(q.Keys)) {
		b.WriteString(" " + scope + "=" + q.Keys[scope])
	}
	return b.String()
}

// heard returns an outcome as it is passed to the upstream's gates. If the caller's reports affect only its own
// calls, the outcome pauses no other caller and cannot charge more than the capacity of a limit.
func (s *Server) heard(h *held, o outcome.Outcome) outcome.Outcome {
	r := s.rights(h.about.Caller)
	if r.believed() {
		return o
	}
	o.Own = true
	o.Hint.Limits = nil
	if o.Hint.Said && o.Hint.After > 0 && !s.permits().pauses(h.about.Caller, h.about.Upstream+" "+h.pool, time.Now().Add(o.Hint.After), r.MaxPauses) {
		o.Hint = outcome.Hint{}
		s.turned("pauses")
	}
	if o.Usage != nil {
		o.Usage = bounded(o.Usage, h.levels)
	}
	return o
}

// bounded caps the usage of each unit at the capacity of the largest limit in this unit.
func bounded(usage map[string]int64, levels []weir.LimitLevel) map[string]int64 {
	most := make(map[string]int64)
	for _, l := range levels {
		most[l.Rule.UnitName()] = max(most[l.Rule.UnitName()], l.Level.Full+l.Level.HeldBack)
	}
	out := make(map[string]int64, len(usage))
	for unit, n := range usage {
		if full, ok := most[unit]; ok {
			n = min(n, full)
		}
		out[unit] = n
	}
	return out
}
