package cascade

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/recent"
	"github.com/seed1158cd35/weir/outcome"
)

// A tier is the state of one tier, independent of the configuration. While its breaker is closed, it is asked without a
// lock.
type tier struct {
	name    string
	breaker *breaker.Breaker
	took    recent.Durations // times of its answers
	code    atomic.Pointer[string]

	watchersMu sync.Mutex
	watchers   map[*func()]bool // called when the breaker opens

	answered atomic.Int64
	failures atomic.Int64
	empty    atomic.Int64
	skipped  atomic.Int64
}

func newTier(c *Cascade, cfg *TierConfig) *tier {
	t := &tier{name: cfg.Name}
	t.breaker = breaker.New(cfg.Name, cfg.Health, func(e breaker.Change) { t.tell(c, e) })
	return t
}

// tell calls the listeners, and recovers from a panic in Options.Changed.
func (t *tier) tell(c *Cascade, e breaker.Change) {
	if e.To == breaker.Open {
		t.watchersMu.Lock()
		watchers := slices.Collect(maps.Keys(t.watchers))
		t.watchersMu.Unlock()
		for _, f := range watchers {
			(*f)()
		}
	}
	if c.options.Changed == nil {
		return
	}
	defer func() { _ = recover() }()
	change := Change{Tier: t.name, From: e.From, To: e.To, Why: e.Why}
	if e.To == breaker.Open {
		change.For = e.Until - e.At
		if code := t.code.Load(); code != nil && e.Why != breaker.Forced {
			change.Code = *code
		}
	}
	c.options.Changed(change)
}

// hear records the outcome of a call and its time.
func (t *tier) hear(now, took time.Duration, p breaker.Ticket, v verdict, code string) {
	if v.Class == outcome.OK {
		t.took.Add(took)
		t.breaker.Good(now, p)
		return
	}
	if v.broken() {
		why := breaker.Hinted
		if v.Hint.Quota {
			why = breaker.QuotaSpent
		}
		t.code.Store(new(code))
		if v.Hint = v.hint(); v.Hint.Said {
			t.breaker.Trip(now, v.Hint, why) // no effect unless it is closed
		}
	}
	t.breaker.Report(now, p, v.Outcome)
}

// needs returns the expected time for an answer: twice the median, which is enough for most answers. While the median is
// unknown, it is an equal part of the time.
func (t *tier) needs(cfg *TierConfig, part time.Duration) time.Duration {
	d := part
	if m := t.took.Median(); m > 0 {
		d = max(2*m, leastKept)
	}
	return min(part, d, cmp.Or(cfg.Timeout, d))
}

// leastKept is the minimum time that is reserved for a tier with known times.
const leastKept = 50 * time.Millisecond

// openBeyond reports whether the tier will not be asked before the instant at.
func (t *tier) openBeyond(at time.Duration) bool {
	s := t.breaker.State()
	return s.Phase == breaker.Open && s.Until > at
}
