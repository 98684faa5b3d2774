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

// A tier is what is known of one tier, whatever the configuration says of it at
// the time. While it is up it is asked without a lock.
type tier struct {
	name    string
	breaker *breaker.Breaker
	took    recent.Durations // its answers
	code    atomic.Pointer[string]

	watchersMu sync.Mutex
	watchers   map[*func()]bool // called when the breaker opens

	answered atomic.Int64
	failures atomic.Int64
	empty    atomic.Int64
	skipped  atomic.Int64
}

// newTier makes a tier whose breaker is closed.
func newTier(c *Cascade, cfg *TierConfig) *tier {
	t := &tier{name: cfg.Name}
	t.breaker = breaker.New(cfg.Name, cfg.Health, func(e breaker.Change) { t.tell(c, e) })
	return t
}

// tell calls the listener, and survives it.
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

// hear has the tier observe what became of a call, and how long it took.
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
			t.breaker.Trip(now, v.Hint, why) // if it is closed
		}
	}
	t.breaker.Report(now, p, v.Outcome)
}

// needs is how long the tier is likely to take for an answer: twice its median, so
// that most are in time. While nothing is known of it that is an equal part of
// what there is.
func (t *tier) needs(cfg *TierConfig, part time.Duration) time.Duration {
	d := part
	if m := t.took.Median(); m > 0 {
		d = max(2*m, leastKept)
	}
	return min(part, d, cmp.Or(cfg.Timeout, d))
}

// leastKept is kept for a tier whose answers take no time to speak of.
const leastKept = 50 * time.Millisecond

// openBeyond reports whether the tier will not be asked before the instant at.
func (t *tier) openBeyond(at time.Duration) bool {
	s := t.breaker.State()
	return s.Phase == breaker.Open && s.Until > at
}
