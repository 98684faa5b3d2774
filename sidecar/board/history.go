package board

import (
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// What a plot shows: so many samples, so far apart.
const (
	step = 10 * time.Second
	kept = 90
)

// A sample is what an upstream did in a step.
type sample struct {
	allowed, waited, refused uint64
	throttled                uint64 // attempts that the upstream throttled
	failed                   uint64 // attempts that failed
	p50, p99                 time.Duration
	open                     bool // one of its breakers was, or was half-open
}

// totals are figures since an upstream was made.
type totals struct {
	allowed, waited, throttled, failed uint64
	refused                            map[weir.Reason]uint64
	took                               map[int]uint64 // attempts, by bucket of counter.Schema
}

// A history is what an upstream did of late.
type history struct {
	counts []*weir.Counts // one for each that has had the name
	last   totals
	ring   []sample // nil until it did something
	next   int
	why    weir.Reason // of most refusals of the latest step
}

// histories are those of all upstreams. They are safe for concurrent use.
type histories struct {
	mu sync.Mutex
	of map[string]*history
}

// counts notes that an upstream was made.
func (h *histories) counts(c *weir.Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = make(map[string]*history)
	}
	one := h.of[c.Upstream()]
	if one == nil {
		one = new(history)
		h.of[c.Upstream()] = one
	}
	one.counts = append(one.counts, c)
}

// sample notes what each upstream did since the last time.
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
		throttled: now.throttled - one.last.throttled, failed: now.failed - one.last.failed, open: isOpen(u)}
	one.why = ""
	most := uint64(0)
	for why, n := range now.refused {
		n -= one.last.refused[why]
		if s.refused += n; n > most {
			one.why, most = why, n
		}
	}
	s.p50, s.p99 = quantiles(now.took, one.last.took)
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

func isOpen(u *weir.Upstream) bool {
	now := u.Now()
	for _, b := range u.Breakers() {
		if b.Look(now).Phase != breaker.Closed {
			return true
		}
	}
	return false
}

func (one *history) totals() totals {
	t := totals{refused: make(map[weir.Reason]uint64), took: make(map[int]uint64)}
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
	}
}

// quantiles are the median and the 99th percentile of what was counted since: the upper bounds of their buckets.
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

// bound is the longest duration of a bucket.
func bound(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i)/(1<<counter.Schema)) * float64(time.Second))
}

// look is the samples of an upstream, the oldest first, and why it refused calls in the latest; nil if it did nothing.
func (h *histories) look(upstream string) (all []sample, why weir.Reason) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.of[upstream]
	if one == nil || one.ring == nil {
		return nil, ""
	}
	return append(append(all, one.ring[one.next:]...), one.ring[:one.next]...), one.why
}
