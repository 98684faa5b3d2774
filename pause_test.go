package weir_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// from returns a call of a pool.
func from(pool string) weir.Call {
	return weir.Call{Pool: pool, Keys: map[string]string{"pool": pool, "user": pool}, Safe: true}
}

// pools returns the pauses of pools.
func pools(u *weir.Upstream) (all []weir.PauseView) {
	for _, v := range u.Look(10).Pauses {
		if v.Kind == pause.Pool {
			all = append(all, v)
		}
	}
	return all
}

// spent returns the outcome of a used-up quota. If after is 0, its reset is unknown.
func spent(after time.Duration) outcome.Outcome {
	o := hinted(after).O
	o.Hint.Said, o.Hint.Quota = after > 0, true
	return o
}

func TestAHintHoldsThePoolItWasGivenTo(t *testing.T) {
	for name, limits := range map[string][]limit.Limit{
		"no limit":           nil,
		"a limit for all":    {rate("all", 100, sec, 100)},
		"one by pool":        {scoped(rate("pool", 100, sec, 100), "pool")},
		"both, and by users": {rate("all", 100, sec, 100), scoped(rate("pool", 100, sec, 100), "pool"), scoped(rate("user", 9, sec, 9), "user")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var paused []weir.PauseEvent
				u := open(t, steady(limits...), weir.Options{Events: weir.Events{Paused: func(e weir.PauseEvent) { paused = append(paused, e) }}})
				p, d := try(u, from("a"))
				if !d.Allowed {
					t.Fatal(d)
				}
				p.Report(hinted(30 * sec).O)
				if len(paused) == 0 || paused[0].For != 30*sec {
					t.Errorf("told of %+v", paused)
				}
				if _, d := try(u, from("a")); d.Reason != weir.Paused || d.RetryAfter != 30*sec {
					t.Errorf("the same pool: %+v, want it held for 30 s", d)
				}
				for _, c := range []weir.Call{from("b"), {}} {
					if _, d := try(u, c); !d.Allowed {
						t.Errorf("pool %q: %+v, want it let go", c.Pool, d)
					}
				}
				if v := pools(u); len(v) != 1 || v[0] != (weir.PauseView{Kind: pause.Pool, Pool: "a", Left: 30 * sec}) {
					t.Errorf("it looks like %+v", v)
				}
				pass(30 * sec)
				if _, d := try(u, from("a")); !d.Allowed || len(u.Look(10).Pauses) != 0 {
					t.Errorf("after the pause: %+v", d)
				}
			})
		})
	}
}

func TestCallersOfAPausedPoolWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 1000, sec, 1000))
		p.MaxWait = 20 * sec
		u := open(t, p, weir.Options{})
		permit, _ := try(u, from("a"))
		permit.Report(hinted(10 * sec).O)
		if took, err := acquire(t.Context(), u, from("a")); err != nil || took != 10*sec {
			t.Errorf("waited %v: %v, want 10 s", took, err)
		}
		permit, _ = try(u, from("a"))
		permit.Report(hinted(30 * sec).O)
		_, err := acquire(t.Context(), u, from("a"))
		if r := refusal(t, err); r.Reason != weir.Paused || r.Pool != "a" || r.Limit != "" || r.RetryAfter != 30*sec {
			t.Errorf("got %+v", r)
		}
		if !strings.Contains(err.Error(), `paused by the upstream for pool "a": retry after 30s`) {
			t.Errorf("it reads %q", err)
		}
	})
}

// A call at the head of the queue for a common limit waits for a pause of its pool. Calls behind it proceed.
func TestAPausedPoolStandsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, inTurn(rate("all", 1, sec, 1)), weir.Options{})
		first, _ := try(u, from("a"))
		var wg sync.WaitGroup
		begin := clock.System.Now()
		for i, pool := range []string{"a", "a", "b", "b"} {
			wg.Go(func() {
				_, err := acquire(t.Context(), u, from(pool))
				if at := since(begin); err != nil || pool == "b" && at > 5*sec || pool == "a" && at < 30*sec {
					t.Errorf("caller %d of pool %s went after %v: %v", i, pool, at, err)
				}
			})
			synctest.Wait()
		}
		first.Report(hinted(30 * sec).O)
		wg.Wait()
		if got := left(t, u, "all", ""); got != 0 {
			t.Errorf("%d left", got)
		}
		pass(sec)
		if got := left(t, u, "all", ""); got != 1 {
			t.Errorf("%d left, want nothing lost", got)
		}
	})
}

func TestAQuotaThatIsSpentSaysSo(t *testing.T) {
	for name, c := range map[string]weir.Call{"pool": from("a"), "limit": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWall("2026-11-20T20:00:00Z")
				u := open(t, steady(rate("all", 100, sec, 100)), weir.Options{Clock: w})
				p, _ := try(u, c)
				p.Report(spent(4 * time.Hour))
				_, err := u.Acquire(background, c)
				r := refusal(t, err)
				if r.Reason != weir.QuotaExhausted || r.RetryAfter != 4*time.Hour || !r.ResetAt().Equal(w.Wall(w.from+4*time.Hour)) {
					t.Errorf("got %+v, reset %v", r, r.ResetAt())
				}
				if !strings.Contains(err.Error(), "resets at 2026-11-21T00:00:00") {
					t.Errorf("it reads %q", err)
				}
				if _, d := try(u, c); d.Reason != weir.QuotaExhausted {
					t.Errorf("got %+v", d)
				}
				pass(4 * time.Hour)
				if _, d := try(u, c); !d.Allowed {
					t.Errorf("after the reset: %+v", d)
				}
			})
		})
	}
}

func TestAQuotaOfUnknownResetIsAskedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		for range 2 {
			p, d := try(u, from("a"))
			if !d.Allowed {
				t.Fatal(d)
			}
			p.Report(spent(0))
			_, err := u.Acquire(background, from("a"))
			if r := refusal(t, err); r.Reason != weir.QuotaExhausted || r.RetryAfter != 15*time.Minute || !r.ResetAt().IsZero() {
				t.Errorf("got %+v", r)
			}
			pass(15 * time.Minute)
		}
		p, _ := try(u, from("a"))
		o := spent(0)
		o.Hint.Advice = outcome.NotAgain // the account needs money
		p.Report(o)
		if _, d := try(u, from("a")); !d.Allowed {
			t.Errorf("got %+v, want no pause that nobody asked for", d)
		}
		p, _ = try(u, weir.Call{})
		p.Report(spent(0))
		if _, d := try(u, weir.Call{}); !d.Allowed {
			t.Errorf("no pool: %+v", d)
		}
	})
}

// A quota's pause is not replaced by a later hint of a minute, and no pause is shortened.
func TestTheLongerPauseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		a, _ := try(u, from("a"))
		b, _ := try(u, from("a"))
		a.Report(spent(time.Hour))
		b.Report(hinted(sec).O)
		if _, d := try(u, from("a")); d.Reason != weir.QuotaExhausted || d.RetryAfter != time.Hour {
			t.Errorf("got %+v", d)
		}
	})
}

func TestARetryWaitsForThePauseOfItsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1000, sec, 1000)), weir.Options{})
		r := answers(hinted(7*sec), nil)
		begin := clock.System.Now()
		if _, err := weir.Do(background, u, from("a"), r.call); err != nil || r.n != 2 {
			t.Fatalf("%d attempts: %v", r.n, err)
		}
		if got := r.at[1] - begin; got < 7*sec || got > 8*sec {
			t.Errorf("the second attempt came after %v, want 7 s and a little", got)
		}
		r = answers(&bad{O: spent(7 * sec)}, nil)
		if _, err := weir.Do(background, u, from("b"), r.call); err == nil || r.n != 1 {
			t.Errorf("a quota: %d attempts, %v; want 1", r.n, err)
		}
	})
}

func TestManyPoolsMayBePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		const many = 12_000
		for round := range 2 {
			held := 0
			for i := range many {
				c := from(fmt.Sprintf("%s %d %d", strings.Repeat("long", 100), round, i))
				p, d := try(u, c)
				if !d.Allowed {
					t.Fatal(d)
				}
				p.Report(hinted(time.Minute).O)
				if _, d := try(u, c); !d.Allowed {
					held++
				}
			}
			if held != 10_000 {
				t.Errorf("%d of %d pools are held, want 10,000: memory is bounded, and what is over makes room", held, many)
			}
			pass(time.Minute)
		}
	})
}

func TestPausesOfManyAtOnce(t *testing.T) {
	u := open(t, steady(scoped(rate("pool", 1000, sec, 1000), "pool")), weir.Options{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				p, d := try(u, from(fmt.Sprint("p", (g+i)%5)))
				if !d.Allowed {
					continue
				}
				o := outcome.Outcome{Class: outcome.OK}
				switch i % 3 {
				case 0:
					o = hinted(time.Microsecond).O
				case 1:
					o = spent(time.Microsecond)
				}
				p.Report(o)
				_ = u.Look(3)
			}
		})
	}
	wg.Wait()
}

// An estimate that waits while the upstream lowers its limit is reduced, instead of being refused permanently.
func TestAGuessIsCutDownWhileItWaits(t *testing.T) {
	for name, p := range map[string]weir.Policy{"as they come": steady(), "in turn": inTurn()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.MaxWait = time.Hour
				l := tokens(100_000, time.Minute, 100_000)
				l.Advertised = "tokens"
				p.Limits = []limit.Limit{l}
				u := open(t, p, weir.Options{})
				c := weir.Call{Estimated: true, Cost: map[string]int64{"tokens": 90_000}}
				first, d := try(u, c)
				if !d.Allowed {
					t.Fatal(d)
				}
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						if _, err := acquire(t.Context(), u, c); err != nil {
							t.Errorf("who waited: %v", err)
						}
					})
				}
				synctest.Wait()
				o := outcome.Outcome{Class: outcome.OK}
				o.Hint.Limits = []outcome.Level{{Name: "tokens", Limit: 40_000, Remaining: 0, Reset: time.Minute}}
				first.Report(o)
				wg.Wait()
			})
		})
	}
}
