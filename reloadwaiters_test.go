package weir_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A crowdOf waits for turns, and counts the calls whose turn has come.
type crowdOf struct {
	ctx  context.Context
	wg   sync.WaitGroup
	went atomic.Int64
}

func (w *crowdOf) call(u *weir.Upstream, n int) {
	for i := range n {
		w.wg.Go(func() {
			p, err := u.Acquire(w.ctx, weir.Call{Keys: map[string]string{"tenant": "x", "user": fmt.Sprint(i % 3)}})
			if err == nil {
				w.went.Add(1)
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		})
	}
}

// Waiting calls whose limit gets another name or scope in a reload, or becomes shared or local, wait for its
// successor together with new calls. The limit is not granted twice.
func TestWhoWaitsGoesByTheLimitThatTookItsPlace(t *testing.T) {
	shared := limit.Limit{Name: "q", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}}
	local := shared
	local.Local = true
	named := func(l limit.Limit) limit.Limit { l.Name = "r"; return l }
	for name, c := range map[string]struct {
		from, to limit.Limit
		most     int64 // in 5s, of two processes
	}{
		"another name":          {shared, named(shared), 50},
		"another scope":         {shared, scoped(shared, "tenant"), 50},
		"shared no more":        {shared, local, 100},
		"shared only now":       {local, shared, 50},
		"a local one, renamed":  {local, named(local), 100},
		"a local one, rescoped": {local, scoped(local, "tenant"), 100},
	} {
		for _, by := range []string{"", "user"} {
			synctest.Test(t, func(t *testing.T) {
				policy := func(l limit.Limit) weir.Policy {
					p := steady(l)
					p.Fair.By, p.MaxWait = by, 30*time.Second
					return p
				}
				all := joined(t, 2, policy(c.from))
				pass(3 * time.Second)
				ctx, end := context.WithTimeout(background, 30*time.Second)
				w := crowdOf{ctx: ctx}
				for _, u := range all {
					w.call(u, 200)
				}
				pass(5 * time.Second)
				before := w.went.Load()
				for _, u := range all {
					set(t, u, policy(c.to))
					w.call(u, 200)
				}
				pass(5 * time.Second)
				// One call of each process may proceed at the instant of the change.
				if n := w.went.Load() - before; n > c.most+2 || n < c.most*8/10 {
					t.Errorf("%s, fair by %q: %d went in 5s, want %d", name, by, n, c.most)
				}
				for _, u := range all { // a call that does not wait gets the available units
					var p weir.Permit
					if d := u.Try(weir.Call{Keys: map[string]string{"tenant": "y"}}, &p); d.Allowed {
						p.Report(outcome.Outcome{Class: outcome.OK})
					}
				}
				end()
				w.wg.Wait()
			})
		}
	}
}

// A replacement limit starts with the units that have come since, including fractions of a unit. If the store treated
// it as full, it would grant 1.76 of a burst of 2 at 24/s, of which only one has come after 42 ms.
func TestALimitThatBeginsHasPartsOfUnitsOnlyAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "q", Rate: bucket.Rate{Amount: 24, Per: time.Second, Burst: 2}}
		all := joined(t, 2, steady(l))
		pass(time.Second)
		l.Scope = "tenant"
		for _, u := range all {
			set(t, u, steady(l))
		}
		pass(55 * time.Millisecond)
		went := 0
		for i := range 3 {
			var p weir.Permit
			if d := all[i%2].Try(weir.Call{Keys: map[string]string{"tenant": "x"}}, &p); d.Allowed {
				p.Report(outcome.Outcome{Class: outcome.OK})
				went++
			}
			pass(6 * time.Millisecond)
		}
		if went != 1 {
			t.Errorf("%d went in 67ms at 24/s from nothing, want 1", went)
		}
	})
}

// A gone is a unit that a process of a fleet used.
type gone struct {
	at time.Duration
	by int
}

// overBucket returns by how many units the usage exceeds a bucket at most. A store counts in microseconds.
func overBucket(all []gone, l limit.Limit) (worst float64) {
	slices.SortStableFunc(all, func(a, b gone) int { return int(a.at - b.at) })
	level, last := 0.0, time.Duration(0)
	for _, g := range all {
		level = max(0, level-l.PerSecond()*(g.at-last).Seconds()) + 1
		last = g.at
		worst = max(worst, level-float64(l.Full())-2e-6*l.PerSecond())
	}
	return worst
}

// However a limit is changed while calls come and wait, in name, scope and sharing, no process exceeds it, nor do all
// together while it is shared.
func TestNothingIsOverHoweverALimitChanges(t *testing.T) {
	for seed := range seeds(40) {
		synctest.Test(t, func(t *testing.T) { changesOfALimit(t, chance(seed), seed) })
		if t.Failed() {
			return
		}
	}
}

func changesOfALimit(t *testing.T, r *rand.Rand, seed uint64) {
	l := limit.Limit{Name: "q", Rate: bucket.Rate{Amount: 5 + r.Int64N(40), Per: time.Second, Burst: 1 + r.Int64N(30)}}
	policy := func() weir.Policy {
		p := steady(l)
		p.MaxWait = time.Duration(1+r.IntN(8)) * time.Second
		if r.IntN(2) == 0 {
			p.Fair.By = "user"
		}
		return p
	}
	all := joined(t, 1+r.IntN(3), policy())
	var mu sync.Mutex
	var wg sync.WaitGroup
	spans := [][]gone{nil} // while it is shared
	var went []gone
	begin := all[0].Now()
	for range 400 {
		by, at, user := r.IntN(len(all)), time.Duration(r.Int64N(int64(20*time.Second))), fmt.Sprint(r.IntN(3))
		patience := time.Duration(r.Int64N(int64(6 * time.Second)))
		wg.Go(func() {
			pass(at)
			ctx, end := context.WithTimeout(background, patience)
			defer end()
			p, err := all[by].Acquire(ctx, weir.Call{Keys: map[string]string{"tenant": "x", "user": user}})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			g := gone{p.Allowed() - begin, by}
			if went = append(went, g); !l.Local {
				spans[len(spans)-1] = append(spans[len(spans)-1], g)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		})
	}
	for range 1 + r.IntN(6) {
		pass(time.Duration(r.Int64N(int64(5 * time.Second))))
		mu.Lock()
		switch r.IntN(3) {
		case 0:
			l.Name += "q"
		case 1:
			l.Scope = map[string]string{"": "tenant", "tenant": ""}[l.Scope]
		case 2:
			if l.Local = !l.Local; !l.Local {
				spans = append(spans, nil)
			}
		}
		p := policy()
		for _, u := range all {
			set(t, u, p)
		}
		mu.Unlock()
	}
	wg.Wait()
	for _, s := range spans {
		if over := overBucket(s, l); over > 1e-6 {
			t.Errorf("seed %d: %v over while it was shared by %d, of %v", seed, over, len(all), l)
		}
	}
	for by := range all {
		own := slices.DeleteFunc(slices.Clone(went), func(g gone) bool { return g.by != by })
		if over := overBucket(own, l); over > 1e-6 {
			t.Errorf("seed %d: %v over of one process of %d, of %v", seed, over, len(all), l)
		}
	}
	if len(went) == 0 {
		t.Errorf("seed %d: nothing went", seed)
	}
}
