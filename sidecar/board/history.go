package board

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// The time of a plot: the interval and the number of samples.
const (
	step = 10 * time.Second
	kept = 90
)

// changesKept is how many changes of an upstream's breakers are kept.
const changesKept = 50

// A sample contains what an upstream did in a step.
type sample struct {
	allowed, waited, refused uint64
	throttled                uint64 // attempts that the upstream throttled
	failed                   uint64 // attempts that failed
	p50, p99                 time.Duration
	wait99                   time.Duration // of waits that ended in a permit
	phases                   phases
}

// phases are the phases in which breakers of an upstream were during a step, however briefly.
type phases struct{ open, probed bool }

func (p *phases) add(in breaker.Phase) {
	p.open = p.open || in == breaker.Open
	p.probed = p.probed || in == breaker.HalfOpen
}

// A Change is a change of a breaker's phase.
type Change struct {
	At   time.Time `json:"at"`
	Key  string    `json:"key,omitempty"`
	From string    `json:"from"`
	To   string    `json:"to"`
	Why  string    `json:"why"`
}

// totals are counts since an upstream was created.
type totals struct {
	allowed, waited, throttled, failed uint64
	refused                            map[weir.Reason]uint64
	took, wait                         map[int]uint64 // attempts and waits, by bucket of counter.Schema
}

// A history is the recent activity of an upstream.
type history struct {
	counts []*weir.Counts // one for each upstream that has had the name
	last   totals
	ring   []sample // nil until there is activity
	next   int
	by     map[weir.Reason]uint64 // refusals of the latest step

	phases  phases   // since the latest sample
	changes []Change // the oldest first
	touched time.Time
}

// histories contains the history of every upstream. It is safe for concurrent use.
type histories struct {
	mu sync.Mutex
	of map[string]*history
}

// counts adds the counts of a new upstream.
func (h *histories) counts(c *weir.Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.named(c.Upstream())
	one.counts = append(one.counts, c)
}

// named returns the history of an upstream. mu must be held.
func (h *histories) named(upstream string) *history {
	if h.of == nil {
		h.of = make(map[string]*history)
	}
	one := h.of[upstream]
	if one == nil {
		one = new(history)
		h.of[upstream] = one
	}
	return one
}

// changed records a change of a breaker's phase.
func (h *histories) changed(e weir.BreakerEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.named(e.Upstream)
	one.touched = time.Now()
	one.phases.add(e.To)
	if len(one.changes) == changesKept {
		one.changes = slices.Delete(one.changes, 0, 1)
	}
	one.changes = append(one.changes, Change{At: time.Now().UTC(), Key: e.Key, From: e.From.String(), To: e.To.String(), Why: e.Why.String()})
}

// sample records what each upstream did since the last sample.
func (h *histories) sample(all map[string]*weir.Upstream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, one := range h.of {
		if u := all[name]; u != nil {
			one.sample(u)
		} else {
			delete(h.of, name)
		}
	}
}

func (one *history) sample(u *weir.Upstream) {
	now := one.totals()
	s := sample{allowed: now.allowed - one.last.allowed, waited: now.waited - one.last.waited,
		throttled: now.throttled - one.last.throttled, failed: now.failed - one.last.failed, phases: one.phases}
	one.by, one.phases = nil, phases{}
	at := u.Now()
	for _, b := range u.Breakers() {
		s.phases.add(b.Look(at).Phase)
	}
	for why, n := range now.refused {
		if n -= one.last.refused[why]; n > 0 {
			if one.by == nil {
				one.by = make(map[weir.Reason]uint64)
			}
			one.by[why] = n
			s.refused += n
		}
	}
	s.p50, s.p99 = quantiles(now.took, one.last.took)
	_, s.wait99 = quantiles(now.wait, one.last.wait)
	one.last = now
	if one.ring == nil {
		if s == (sample{}) {
			return
		}
		one.ring = make([]sample, kept)
	}
	one.ring[one.next] = s
	one.next = (one.next + 1) % kept
}

func (one *history) totals() totals {
	t := totals{refused: make(map[weir.Reason]uint64), took: make(map[int]uint64), wait: make(map[int]uint64)}
	for _, c := range one.counts {
		for n := range c.All() {
			t.add(&n)
		}
	}
	return t
}

func (t *totals) add(n *weir.Count) {
	switch {
	case n.What == weir.Decisions && n.Word == weir.DecidedAllowed:
		t.allowed += n.N
	case n.What == weir.Decisions && n.Word == weir.DecidedWaited:
		t.waited += n.N
	case n.What == weir.Decisions:
		t.refused[weir.Reason(n.Word)] += n.N
	case n.What == weir.Attempts:
		switch n.Word {
		case outcome.Throttled.String():
			t.throttled += n.N
		case outcome.Failed.String():
			t.failed += n.N
		}
		for i, k := range n.Took.Buckets {
			t.took[i] += k
		}
	case n.What == weir.Waits:
		for i, k := range n.Took.Buckets {
			t.wait[i] += k
		}
	}
}

// quantiles returns the median and the 99th percentile of the counts since last, as upper bounds of their buckets.
func quantiles(now, last map[int]uint64) (p50, p99 time.Duration) {
	low, high, all := math.MaxInt, math.MinInt, uint64(0)
	for i, n := range now {
		if n -= last[i]; n > 0 {
			low, high, all = min(low, i), max(high, i), all+n
		}
	}
	sum := uint64(0)
	for i := low; i <= high && all > 0; i++ {
		sum += now[i] - last[i]
		if p50 == 0 && 2*sum >= all {
			p50 = bound(i)
		}
		if 100*sum >= 99*all {
			return p50, bound(i)
		}
	}
	return 0, 0
}

// bound returns the longest duration of a bucket.
func bound(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i)/(1<<counter.Schema)) * float64(time.Second))
}

// look returns an upstream's latest sample, its refusals by reason, and its breaker changes, the oldest first.
func (h *histories) look(upstream string) (last sample, by map[weir.Reason]uint64, changes []Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.of[upstream]
	if one == nil {
		return last, nil, nil
	}
	if one.ring != nil {
		last = one.ring[(one.next+kept-1)%kept]
	}
	return last, one.by, slices.Clone(one.changes) // by does not change any more
}

// samples returns the recent samples of an upstream, the oldest first; nil if it did nothing.
func (h *histories) samples(upstream string) (all []sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.of[upstream]; one != nil && one.ring != nil {
		all = append(append(make([]sample, 0, kept), one.ring[one.next:]...), one.ring[:one.next]...)
	}
	return all
}

// touched returns when a breaker of an upstream last changed its phase, or one of its pauses began or was lifted.
func (h *histories) touched(upstream string) (at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.of[upstream]; one != nil {
		at = one.touched
	}
	return at
}

// paused records that an upstream's pauses have changed.
func (h *histories) paused(e weir.PauseEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.named(e.Upstream).touched = time.Now()
}
