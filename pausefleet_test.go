package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// heardBy is the longest time until a pause applies in the whole fleet.
const heardBy = 2 * sec

// A cut is a store with a latency, and it can be unreachable for one process.
type cut struct {
	fleet.Store
	away  atomic.Bool
	there time.Duration
}

var errCut = errors.New("no route to the store")

func (c *cut) pass(ctx context.Context) error {
	if err := clock.System.Sleep(ctx, c.there); err != nil {
		return err
	}
	if c.away.Load() {
		return errCut
	}
	return nil
}

func (c *cut) Take(ctx context.Context, a *fleet.Ask) error {
	if err := c.pass(ctx); err != nil {
		return err
	}
	return c.Store.Take(ctx, a)
}

func (c *cut) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if err := c.pass(ctx); err != nil {
		return fleet.Standing{}, err
	}
	return c.Store.Beat(ctx, b)
}

func (c *cut) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if err := c.pass(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return c.Store.Load(ctx, group, names)
}

func (c *cut) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if err := c.pass(ctx); err != nil {
		return fleet.Record{}, false, err
	}
	return c.Store.Swap(ctx, group, r)
}

// A peer is one process of a fleet.
type peer struct {
	t *testing.T
	*weir.Upstream
	cut    *cut
	fleet  *fleet.Fleet
	events eventsHeard
}

type eventsHeard struct {
	sync.Mutex
	paused, resumed []weir.PauseEvent
	damaged         []weir.DamageEvent
}

// join starts a process that shares a store.
func join(t *testing.T, s fleet.Store, p weir.Policy, o fleet.Options) *peer {
	t.Helper()
	x := &peer{t: t, cut: &cut{Store: s, there: ms}}
	x.fleet = fleet.New(x.cut, o)
	x.fleet.Start()
	var err error
	x.Upstream, err = weir.New("up", p, weir.Options{Fleet: x.fleet, Events: weir.Events{
		Paused: func(e weir.PauseEvent) {
			x.events.Lock()
			x.events.paused = append(x.events.paused, e)
			x.events.Unlock()
		},
		Resumed: func(e weir.PauseEvent) {
			x.events.Lock()
			x.events.resumed = append(x.events.resumed, e)
			x.events.Unlock()
		},
		Damaged: func(e weir.DamageEvent) {
			x.events.Lock()
			x.events.damaged = append(x.events.damaged, e)
			x.events.Unlock()
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.leave)
	return x
}

func (x *peer) leave() {
	x.Close()
	ctx, cancel := context.WithTimeout(background, sec)
	defer cancel()
	_ = x.fleet.Close(ctx) // the store may be unreachable
}

// told makes a call with this outcome in the process.
func (x *peer) told(c weir.Call, o outcome.Outcome) {
	x.t.Helper()
	p, err := x.Acquire(background, c)
	if err != nil {
		x.t.Fatalf("who is to be told: %v", err)
	}
	p.Report(o)
}

// goes reports whether a call is allowed now.
func (x *peer) goes(c weir.Call) bool {
	p, err := x.Acquire(background, c)
	if err != nil {
		return false
	}
	p.Report(outcome.Outcome{Class: outcome.OK})
	return true
}

// held checks that no call is allowed for a time.
func held(t *testing.T, long time.Duration, c weir.Call, all ...*peer) {
	t.Helper()
	begin := clock.System.Now()
	for since(begin) < long {
		for i, x := range all {
			if x.goes(c) {
				t.Fatalf("process %d calls %v after the others were to have heard", i, since(begin))
			}
		}
		pass(100 * ms)
	}
}

func known(t *testing.T) *fleet.Memory {
	t.Helper()
	return fleet.NewMemory(nil)
}

// ofAll returns a policy without waits.
func ofAll(limits ...limit.Limit) weir.Policy {
	p := steady(limits...)
	p.MaxWait = -1
	return p
}

func but(l limit.Limit, change func(*limit.Limit)) limit.Limit {
	change(&l)
	return l
}

// everyPolicy contains each way in which a call can be limited, or not.
var everyPolicy = map[string]weir.Policy{
	"no limit":               ofAll(),
	"another operation's":    ofAll(but(rate("put", 100, sec, 100), func(l *limit.Limit) { l.Operations = []string{"put"} })),
	"one for all":            ofAll(rate("all", 1000, sec, 1000)),
	"by key":                 ofAll(scoped(rate("user", 1000, sec, 1000), "user")),
	"by key and one for all": ofAll(scoped(rate("user", 1000, sec, 1000), "user"), rate("all", 1000, sec, 1000)),
	"rolling":                ofAll(but(rate("all", 1000, sec, 0), func(l *limit.Limit) { l.Shape = limit.Rolling })),
	"by the day":             ofAll(but(limit.Limit{Name: "all", Shape: limit.Calendar}, func(l *limit.Limit) { l.Amount, l.Every = 1e6, bucket.Day })),
	"local":                  ofAll(but(rate("all", 1000, sec, 1000), func(l *limit.Limit) { l.Local = true })),
	"learnt":                 ofAll(but(rate("all", 1000, sec, 1000), func(l *limit.Limit) { l.Adaptive.On, l.Adaptive.Start = true, 500 })),
	"told":                   ofAll(but(scoped(rate("rpm", 1000, sec, 1000), "user"), func(l *limit.Limit) { l.Advertised = "requests" })),
}

// A hint that one process receives pauses all processes, whatever limits the call.
func TestAPauseReachesTheWholeFleet(t *testing.T) {
	for name, p := range everyPolicy {
		for _, pool := range []string{"", "key/model"} {
			t.Run(name+" "+pool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := known(t)
					a, b, c := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
					call := weir.Call{Operation: "get", Pool: pool, Keys: map[string]string{"user": "u"}}
					pass(3 * sec)
					if !b.goes(call) || !c.goes(call) {
						t.Fatal("nobody goes before the pause")
					}
					begin := clock.System.Now()
					a.told(call, hinted(30*sec).O)
					pass(heardBy)
					held(t, 30*sec-since(begin), call, a, b, c)
					pass(50 * ms)
					for i, x := range []*peer{a, b, c} {
						if !x.goes(call) {
							_, err := x.Acquire(background, call)
							t.Errorf("process %d does not go after the pause: %v", i, err)
						}
					}
					if other := (weir.Call{Operation: "get", Pool: "another", Keys: map[string]string{"user": "v"}}); !b.goes(other) {
						t.Error("another is held")
					}
				})
			})
		}
	}
}

// A request to the store for units also returns new pauses, without a delay.
func TestWhoAsksTheStoreHearsAtOnce(t *testing.T) {
	for name, p := range map[string]weir.Policy{"its limit": everyPolicy["one for all"], "the pool": everyPolicy["by key"]} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				for range raced.Of(50, 3) {
					o := fleet.Options{Lease: -1}
					a, b := join(t, store, p, o), join(t, store, p, o)
					call := weir.Call{Operation: "get", Pool: "key/model", Keys: map[string]string{"user": "key/model"}}
					for begin := clock.System.Now(); since(begin) < 3*sec; pass(7 * ms) {
						_ = b.goes(call)
					}
					begin := clock.System.Now()
					a.told(call, hinted(5*sec).O)
					for since(begin) < 5*sec-20*ms {
						at := since(begin)
						if b.goes(call) && at > 150*ms {
							t.Fatalf("who asks calls %v later", at)
						}
						pass(7 * ms)
					}
					a.leave()
					b.leave()
					pass(sec)
				}
			})
		})
	}
}

// A pause that another process starts also applies to waiting calls.
func TestThoseWhoWaitHearOfAPauseElsewhere(t *testing.T) {
	slow := func(l limit.Limit) limit.Limit { l.Rate = bucket.Rate{Amount: 4, Per: sec, Burst: 1}; return l }
	for name, p := range map[string]weir.Policy{
		"shared": steady(slow(rate("all", 1, sec, 1))), "shared, fair": inTurn(slow(rate("all", 1, sec, 1))),
		"local":       steady(but(slow(rate("all", 1, sec, 1)), func(l *limit.Limit) { l.Local = true })),
		"local, fair": inTurn(but(slow(rate("all", 1, sec, 1)), func(l *limit.Limit) { l.Local = true })),
	} {
		for _, pool := range []string{"", "a"} {
			t.Run(name+" "+pool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p.MaxWait = time.Hour
					store := known(t)
					a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
					pass(5 * sec)
					call := weir.Call{Pool: pool, Keys: map[string]string{"user": "u"}}
					begin := clock.System.Now()
					var wg sync.WaitGroup
					var mu sync.Mutex
					var went []time.Duration
					for range 40 {
						wg.Go(func() {
							q, err := b.Acquire(t.Context(), call)
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							went = append(went, since(begin))
							mu.Unlock()
							q.Report(outcome.Outcome{Class: outcome.OK})
						})
					}
					pass(sec)
					from := since(begin)
					x := weir.Call{Pool: pool, Keys: map[string]string{"user": "u"}, Priority: limit.High}
					a.told(x, hinted(30*sec).O)
					told := since(begin)
					wg.Wait()
					for _, at := range went {
						if at > told+heardBy && at < from+30*sec {
							t.Errorf("one who waited goes after %v; the other was told at %v to wait 30 s", at, told)
						}
					}
					if slices.Max(went) < 30*sec {
						t.Error("all went before the pause: nothing was tested")
					}
				})
			})
		}
	}
}

// A new process receives the pauses with its first contact, before its first call.
func TestWhoStartsLearnsOfPausesFirst(t *testing.T) {
	for name, p := range everyPolicy {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				a := join(t, store, p, fleet.Options{})
				call := weir.Call{Operation: "get", Keys: map[string]string{"user": "u"}}
				pass(3 * sec)
				a.told(call, hinted(30*sec).O)
				pass(sec)
				for range 3 {
					b := join(t, store, p, fleet.Options{})
					held(t, sec, call, b)
				}
				_, d := try(join(t, store, p, fleet.Options{}).Upstream, call)
				if d.Allowed || d.Reason != weir.Paused {
					t.Errorf("who tries at once: %+v", d)
				}
			})
		})
	}
}

// If the store is unreachable, a new process waits at most its longest wait, and then proceeds.
func TestWhoStartsWithoutAStoreIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &cut{Store: known(t), there: time.Hour}
		b := join(t, store, steady(), fleet.Options{})
		begin := clock.System.Now()
		if !b.goes(weir.Call{}) || since(begin) > sec {
			t.Errorf("it goes after %v", since(begin))
		}
		none := join(t, store, ofAll(), fleet.Options{}) // its calls do not wait
		if begin = clock.System.Now(); !none.goes(weir.Call{}) || since(begin) > 250*ms {
			t.Errorf("it goes after %v", since(begin))
		}
		if begin = clock.System.Now(); !b.goes(weir.Call{}) || since(begin) != 0 {
			t.Errorf("the second goes after %v", since(begin))
		}
		ctx, cancel := context.WithTimeout(background, 10*ms)
		defer cancel()
		begin = clock.System.Now()
		if _, err := join(t, store, ofAll(), fleet.Options{}).Acquire(ctx, weir.Call{}); err == nil || since(begin) != 10*ms {
			t.Errorf("who leaves waits %v: %v", since(begin), err)
		}
	})
}

// During an outage of the store each process keeps its own pauses. Afterwards they apply everywhere.
func TestPausesWhileTheStoreIsAway(t *testing.T) {
	for name, p := range everyPolicy {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
				call := weir.Call{Operation: "get", Keys: map[string]string{"user": "u"}}
				for range 800 { // a process that is new, or has not used a limit recently, has no part of it during an outage
					_, _ = a.goes(call), b.goes(call)
					pass(10 * ms)
				}
				a.cut.away.Store(true)
				pass(3 * sec) // until both have detected the outage and use their parts, also of rolling limits
				begin := clock.System.Now()
				a.told(call, hinted(60*sec).O)
				held(t, 20*sec, call, a)
				if !b.goes(call) {
					t.Error("the other cannot have heard")
				}
				a.cut.away.Store(false)
				pass(2 * heardBy) // the store is contacted again
				held(t, 60*sec-since(begin), call, a, b)
				pass(2 * sec)
				if !a.goes(call) || !b.goes(call) {
					t.Error("one is held after the pause")
				}
			})
		})
	}
}

// Processes write their pauses again to a store that has lost its data.
func TestAnEmptiedStoreIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ofAll()
		first, second := known(t), known(t)
		store := &swapped{}
		store.in.Store(first)
		a := join(t, store, p, fleet.Options{})
		pass(sec)
		a.told(weir.Call{}, hinted(60*sec).O)
		pass(sec)
		store.in.Store(second)
		pass(heardBy)
		held(t, 50*sec, weir.Call{}, a, join(t, store, p, fleet.Options{}))
	})
}

type swapped struct {
	fleet.Store
	in atomic.Pointer[fleet.Memory]
}

func (s *swapped) Take(ctx context.Context, a *fleet.Ask) error { return s.in.Load().Take(ctx, a) }
func (s *swapped) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	return s.in.Load().Beat(ctx, b)
}
func (s *swapped) Load(ctx context.Context, g string, n []string) ([]fleet.Record, time.Time, error) {
	return s.in.Load().Load(ctx, g, n)
}
func (s *swapped) Swap(ctx context.Context, g string, r fleet.Record) (fleet.Record, bool, error) {
	return s.in.Load().Swap(ctx, g, r)
}

// A Retry-After of three years pauses each process at most for its own bound. So does a record with such a time, or a
// worse one.
func TestAPauseOfYearsIsBoundedEverywhere(t *testing.T) {
	const years = 3 * 365 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		long, short := ofAll(), ofAll()
		long.MaxPause, short.MaxPause = time.Hour, time.Minute
		a, b := join(t, store, long, fleet.Options{}), join(t, store, short, fleet.Options{})
		pass(sec)
		begin := clock.System.Now()
		a.told(weir.Call{}, hinted(years).O)
		pass(heardBy)
		held(t, time.Minute-since(begin)-sec, weir.Call{}, b)
		pass(2 * sec)
		if !b.goes(weir.Call{}) || a.goes(weir.Call{}) {
			t.Error("each process has its own bound")
		}
		pass(time.Hour - since(begin) + sec)
		if !a.goes(weir.Call{}) {
			t.Error("the other is held beyond its bound")
		}
	})
	present := func() int64 { return time.Now().UnixMicro() }
	for name, record := range map[string]func() string{
		"years": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"operation","name":"default","rate":{"until":%d,"at":%d}}]}`, present()+int64(years/1000), present())
		},
		"for ever": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"upstream","rate":{"until":%d,"at":%d}}]}`, int64(math.MaxInt64), present())
		},
		"from the future": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"upstream","rate":{"until":%d,"at":%d}}]}`, int64(math.MaxInt64), present()+int64(time.Hour/1000)-1)
		},
		"the far future": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"upstream","rate":{"until":%d,"at":%d}}]}`, int64(math.MaxInt64), int64(math.MaxInt64))
		},
		"before all time": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"upstream","rate":{"until":%d,"at":%d}}]}`, int64(math.MaxInt64), int64(math.MinInt64))
		},
		"lifted for ever": func() string {
			return fmt.Sprintf(`{"pauses":[{"what":"upstream","lifted":%d}]}`, int64(math.MaxInt64))
		},
		"no text":          func() string { return "\xff\x00{" },
		"another document": func() string { return `[1,2,{"pauses":7}]` },
		"nothing":          func() string { return "" },
		"an unknown kind":  func() string { return `{"pauses":[{"what":"galaxy","rate":{"until":9,"at":9}}]}` },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				begin := clock.System.Now()
				if _, ok, err := store.Swap(background, "up", fleet.Record{Name: "pauses", Value: []byte(record()), Keep: years}); !ok || err != nil {
					t.Fatal(err)
				}
				a, b := join(t, store, ofAll(), fleet.Options{}), join(t, store, ofAll(), fleet.Options{})
				pass(15*time.Minute - since(begin) + sec)
				if !a.goes(weir.Call{}) || !b.goes(weir.Call{}) {
					_, err := a.Acquire(background, weir.Call{})
					t.Fatalf("held beyond max_pause by a record of %s: %v", name, err)
				}
				// It does not block later pauses and resumes.
				a.told(weir.Call{}, hinted(60*sec).O)
				pass(heardBy)
				held(t, 10*sec, weir.Call{}, a, b)
				_, _ = b.Resume(pause.All(), false)
				pass(heardBy)
				if !a.goes(weir.Call{}) || !b.goes(weir.Call{}) {
					t.Error("held although it was lifted")
				}
				all, _, err := store.Load(background, "up", []string{"pauses"})
				if err != nil || !json.Valid(all[0].Value) {
					t.Errorf("the record is %q, %v", all[0].Value, err)
				}
			})
		})
	}
}

// The cause of a pause, and the reset of a quota, are known everywhere.
func TestTheReasonIsHeardToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		a, b := join(t, store, ofAll(), fleet.Options{}), join(t, store, ofAll(), fleet.Options{})
		pass(sec)
		begin := time.Now()
		a.told(from("a"), spent(4*time.Hour))
		a.told(from("b"), hinted(time.Minute).O)
		a.told(from("c"), spent(0))
		pass(heardBy)
		_, err := b.Acquire(background, from("a"))
		if r := refusal(t, err); r.Reason != weir.QuotaExhausted || r.Pool != "a" || r.ResetAt().Sub(begin).Round(sec) != 4*time.Hour {
			t.Errorf("a: %+v, reset %v", r, r.ResetAt())
		}
		if _, err = b.Acquire(background, from("b")); refusal(t, err).Reason != weir.Paused {
			t.Errorf("b: %v", err)
		}
		_, err = b.Acquire(background, from("c"))
		if r := refusal(t, err); r.Reason != weir.QuotaExhausted || !r.ResetAt().IsZero() {
			t.Errorf("c: %+v, reset %v", r, r.ResetAt())
		}
		v := b.Look(10).Pauses
		if len(v) != 3 || v[0].Pool != "a" || v[0].Reason != pause.Quota || v[0].By != a.fleet.Client() || v[2].Pool != "b" || v[2].Reason != pause.Rate {
			t.Errorf("it looks like %+v", v)
		}
		b.events.Lock()
		defer b.events.Unlock()
		if len(b.events.paused) != 3 || b.events.paused[0].By != weir.ByFleet || b.events.paused[0].Pool == "" {
			t.Errorf("told of %+v", b.events.paused)
		}
	})
}

// Pauses outlast a reload of the policy, in this process and in others, also if it adds or changes a limit.
func TestAReloadKeepsPauses(t *testing.T) {
	for name, p := range everyPolicy {
		for next, q := range everyPolicy {
			if a, b := p.Limits, q.Limits; len(a) > 0 && (len(b) == 0 || b[0].Name != a[0].Name || b[0].Scope != a[0].Scope) {
				continue // the paused limit is gone
			}
			t.Run(name+" to "+next, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := known(t)
					a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
					call := weir.Call{Operation: "get", Keys: map[string]string{"user": "u"}}
					pass(sec)
					a.told(call, hinted(30*sec).O)
					pass(heardBy)
					for _, x := range []*peer{a, b} {
						set(t, x.Upstream, q)
					}
					held(t, 10*sec, call, a, b)
				})
			})
		}
	}
}

// An open breaker, a used-up quota and a pool's pause apply independently: none shortens another one.
func TestPausesBesideOtherReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		p := ofAll(rate("all", 100, sec, 100))
		p.Breaker.Off = false
		a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
		pass(sec)
		a.told(from("a"), hinted(40*sec).O)
		a.told(from("b"), spent(20*sec))
		a.Breaker("").ForceOpen(a.Now(), 10*sec)
		pass(heardBy)
		begin := clock.System.Now()
		reasons := map[weir.Reason]int{}
		for since(begin) < 50*sec {
			for _, x := range []*peer{a, b} {
				for _, c := range []weir.Call{from("a"), from("b")} {
					if q, err := x.Acquire(background, c); err != nil {
						reasons[refusal(t, err).Reason]++
					} else if q.Report(outcome.Outcome{Class: outcome.OK}); c.Pool == "a" && since(begin) < 37*sec || c.Pool == "b" && since(begin) < 17*sec {
						t.Fatalf("pool %s goes after %v", c.Pool, since(begin))
					}
				}
			}
			pass(250 * ms)
		}
		if got := slices.Sorted(maps.Keys(reasons)); !slices.Equal(got, []weir.Reason{weir.CircuitOpen, weir.Paused, weir.QuotaExhausted}) {
			t.Errorf("reasons are %v", reasons)
		}
	})
}

// A custom gate may wait. A pause that begins meanwhile applies to the call.
func TestAPauseThatBeginsWhileAGateWaits(t *testing.T) {
	for name, p := range everyPolicy {
		synctest.Test(t, func(t *testing.T) {
			gate := &ledger{}
			p.MaxWait = 10 * sec
			u := open(t, p, weir.Options{Gates: []weir.Gate{gate, slowly{}}})
			first, _ := try(u, weir.Call{Operation: "get"})
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := acquire(t.Context(), u, weir.Call{Operation: "get"})
				if r := refusal(t, err); r.Reason != weir.Paused || r.RetryAfter != 29*sec {
					t.Errorf("%s: refused with %+v", name, r)
				}
			})
			pass(sec)
			first.Report(hinted(30 * sec).O)
			wg.Wait()
			if err := gate.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// slowly is a gate that admits each call after two seconds.
type slowly struct{}

func (slowly) Admit(ctx context.Context, _ weir.Call) (func(outcome.Outcome), error) {
	return nil, clock.System.Sleep(ctx, 2*sec)
}

// A call with several shared limits waits for the end of a pause like any other call.
func TestACallWithSeveralLimitsWaitsForThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		p := steady(rate("a", 100, sec, 100), rate("b", 100, sec, 100), scoped(rate("user", 100, sec, 100), "user"))
		a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
		pass(3 * sec)
		call := weir.Call{Keys: map[string]string{"user": "u"}}
		begin := clock.System.Now()
		a.told(call, hinted(8*sec).O)
		pass(heardBy)
		for i, x := range []*peer{a, b} {
			q, err := x.Acquire(t.Context(), call)
			if at := since(begin); err != nil || at < 8*sec || at > 10*sec {
				t.Fatalf("process %d goes after %v: %v", i, at, err)
			}
			q.Report(outcome.Outcome{Class: outcome.OK})
		}
	})
}
