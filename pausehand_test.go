package weir_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// handled returns a policy with limits and operations of every kind, for calls of which a pause of each kind holds
// some.
func handled() weir.Policy {
	p := ofAll(scoped(rate("user", 1000, sec, 1000), "user"), but(rate("puts", 1000, sec, 1000), func(l *limit.Limit) { l.Operations = []string{"put"} }))
	p.Operations = []weir.Operation{{Name: "put"}, {Name: "get"}}
	return p
}

func asks(operation, user, pool string) weir.Call {
	return weir.Call{Operation: operation, Keys: map[string]string{"user": user}, Pool: pool}
}

var byHand = map[string]struct {
	of          pause.Subject
	holds, goes []weir.Call
}{
	"everything": {pause.All(), []weir.Call{asks("put", "a", ""), asks("get", "b", "p"), {}}, nil},
	"a limit":    {pause.OfLimits("puts"), []weir.Call{asks("put", "a", ""), asks("put", "b", "p")}, []weir.Call{asks("get", "a", ""), {}}},
	"a limit with keys": {pause.OfLimits("user"), []weir.Call{asks("put", "a", ""), asks("get", "b", "p"), {}}, []weir.Call{
		{Operation: "get", Cost: map[string]int64{limit.Requests: 0}}}},
	"a key":        {pause.OfLimit("user", "user", "a"), []weir.Call{asks("put", "a", ""), asks("get", "a", "p")}, []weir.Call{asks("put", "b", ""), {}}},
	"a long key":   {pause.OfLimit("user", "user", long), []weir.Call{asks("put", long, "")}, []weir.Call{asks("put", "b", ""), {}}},
	"a pool":       {pause.OfPool("p"), []weir.Call{asks("put", "a", "p"), asks("get", "b", "p")}, []weir.Call{asks("put", "a", ""), asks("put", "a", "q"), {}}},
	"an operation": {pause.OfOperation("get"), []weir.Call{asks("get", "a", ""), asks("get", "b", "p")}, []weir.Call{asks("put", "a", ""), {}}},
	"the others":   {pause.OfOperation("default"), []weir.Call{{}, asks("list", "a", "")}, []weir.Call{asks("put", "a", ""), asks("get", "b", "p")}},
}

var long = strings.Repeat("long\xff", 100)

// An operator's pause at one process applies in the whole fleet, to the calls that it names and no others, until it
// ends or is lifted. An operator can lift an upstream's pause too.
func TestPausesByHand(t *testing.T) {
	for name, c := range byHand {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				all := []*peer{join(t, store, handled(), fleet.Options{}), join(t, store, handled(), fleet.Options{})}
				pass(3 * sec)
				wants := func(held bool) {
					t.Helper()
					for i, x := range all {
						for _, call := range c.holds {
							if x.goes(call) == held {
								t.Errorf("process %d: %+v is held: %v", i, call, !held)
							}
						}
						for _, call := range c.goes {
							if !x.goes(call) {
								t.Errorf("process %d: %+v does not go", i, call)
							}
						}
					}
				}
				wants(false)
				if err := all[0].Pause(c.of, 20*sec, false); err != nil {
					t.Fatal(err)
				}
				_, err := all[0].Acquire(background, c.holds[0])
				if r := refusal(t, err); r.Reason != weir.Paused || !r.ByHand || r.RetryAfter != 20*sec || !strings.Contains(err.Error(), "by an operator") {
					t.Errorf("refused with %+v: %v", r, err)
				}
				pass(heardBy)
				wants(true)
				if v := all[1].Look(0).Pauses; len(v) != 1 || v[0].Subject() != c.of || v[0].Reason != pause.Hand || v[0].By != all[0].fleet.Client() {
					t.Errorf("it looks like %+v", v)
				}
				pass(18*sec - heardBy)
				wants(true)
				pass(2*sec + 20*ms)
				wants(false)

				if err := all[1].Pause(c.of, 0, false); err != nil {
					t.Fatal(err)
				}
				pass(30 * time.Minute)
				wants(true)
				if n, err := all[0].Resume(c.of, false); n != 1 || err != nil {
					t.Errorf("lifted %d, %v", n, err)
				}
				pass(heardBy)
				wants(false)
				if v := all[1].Look(0); v.Paused != 0 || len(v.Pauses) != 0 {
					t.Errorf("it looks like %+v", v.Pauses)
				}

				if err := all[0].Pause(c.of, time.Hour, true); err != nil {
					t.Fatal(err)
				}
				pass(heardBy)
				if !all[1].goes(c.holds[0]) || all[0].goes(c.holds[0]) {
					t.Error("what is meant for one process holds another")
				}
				if _, err := all[0].Resume(pause.All(), true); err != nil {
					t.Error(err)
				}
				wants(false)
			})
		})
	}
}

// A pause that is lifted in one process only stays lifted there, whatever the fleet's record contains, and applies to
// the others.
func TestALiftHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		a, b := join(t, store, ofAll(), fleet.Options{}), join(t, store, ofAll(), fleet.Options{})
		pass(sec)
		a.told(weir.Call{}, hinted(10*time.Minute).O)
		pass(heardBy)
		held(t, sec, weir.Call{}, b)
		if n, err := b.Resume(pause.All(), true); n != 1 || err != nil {
			t.Fatalf("lifted %d, %v", n, err)
		}
		for i := range 5 { // each changes the record
			if err := a.Pause(pause.OfPool(string(rune('a'+i))), time.Hour, false); err != nil {
				t.Fatal(err)
			}
			pass(heardBy)
			if !b.goes(weir.Call{}) || a.goes(weir.Call{}) {
				t.Fatalf("after %d more the lift does not hold where it was ordered, or holds elsewhere", i)
			}
		}
		if err := a.Pause(pause.OfOperation("default"), time.Hour, false); err != nil {
			t.Fatal(err)
		}
		pass(heardBy)
		held(t, sec, weir.Call{}, a, b) // a later pause
	})
}

func TestAPauseByHandInOneProcess(t *testing.T) {
	for name, c := range byHand {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := open(t, handled(), weir.Options{})
				for _, here := range []bool{false, true} {
					if err := u.Pause(c.of, 0, here); err != nil {
						t.Fatal(err)
					}
					for _, call := range c.holds {
						if _, d := try(u, call); d.Allowed || d.Reason != weir.Paused || d.RetryAfter != weir.Never {
							t.Errorf("%+v: %+v", call, d)
						}
					}
					for _, call := range c.goes {
						if _, d := try(u, call); !d.Allowed {
							t.Errorf("%+v: %+v", call, d)
						}
					}
					if n, err := u.Resume(pause.All(), here); n != 1 || err != nil {
						t.Errorf("lifted %d, %v", n, err)
					}
					for _, call := range c.holds {
						if _, d := try(u, call); !d.Allowed {
							t.Errorf("after the lift %+v: %+v", call, d)
						}
					}
				}
			})
		})
	}
}

// An operator can lift every pause that an upstream requested, by its own scope and by a larger one.
func TestAHintCanBeLifted(t *testing.T) {
	for name, p := range everyPolicy {
		for _, pool := range []string{"", "u"} {
			t.Run(name+" "+pool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := known(t)
					a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
					call := weir.Call{Operation: "get", Pool: pool, Keys: map[string]string{"user": "u"}}
					pass(sec)
					for _, o := range []outcome.Outcome{hinted(10 * time.Minute).O, spent(time.Hour)} {
						a.told(call, o)
						pass(heardBy)
						held(t, sec, call, a, b)
						for _, v := range b.Look(0).Pauses {
							if n, err := b.Resume(v.Subject(), false); n != 1 || err != nil {
								t.Errorf("%v: lifted %d, %v", v.Subject(), n, err)
							}
						}
						if !b.goes(call) {
							t.Error("who lifts it does not go at once")
						}
						pass(heardBy)
						if !a.goes(call) {
							_, err := a.Acquire(background, call)
							t.Errorf("the other has not heard: %v", err)
						}
					}
					b.events.Lock()
					defer b.events.Unlock()
					if len(b.events.resumed) == 0 || b.events.resumed[0].By != weir.ByHand {
						t.Errorf("told of %+v", b.events.resumed)
					}
				})
			})
		}
	}
}

// Resuming a limit with keys resumes all its keys.
func TestALiftOfALimitLiftsItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		a, b := join(t, store, handled(), fleet.Options{}), join(t, store, handled(), fleet.Options{})
		pass(sec)
		for _, user := range []string{"a", "b", "c"} {
			a.told(asks("get", user, ""), hinted(time.Minute).O)
		}
		a.told(asks("get", "d", "p"), hinted(time.Minute).O)
		pass(heardBy)
		held(t, sec, asks("get", "b", ""), a, b)
		if n, err := b.Resume(pause.OfLimits("user"), false); n != 3 || err != nil {
			t.Errorf("lifted %d, %v", n, err)
		}
		pass(heardBy)
		for _, user := range []string{"a", "b", "c"} {
			if !a.goes(asks("get", user, "")) || !b.goes(asks("get", user, "")) {
				t.Errorf("%s is held", user)
			}
		}
		held(t, sec, asks("get", "d", "p"), a, b) // a pause of another kind
		if n, err := b.Resume(pause.All(), false); n != 1 || err != nil {
			t.Errorf("lifted %d, %v", n, err)
		}
	})
}

// A process that was cut off returns with a pause that was lifted meanwhile. It is lifted there too, and stops no
// call. A pause that it received after the lift applies.
func TestALiftIsNotUndoneByWhoComesLate(t *testing.T) {
	for _, again := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := known(t)
				a, b := join(t, store, ofAll(), fleet.Options{}), join(t, store, ofAll(), fleet.Options{})
				pass(sec)
				if !own {
					a.told(weir.Call{}, hinted(10*time.Minute).O)
					pass(heardBy)
				}
				late, err := a.Acquire(background, from("another"))
				if err != nil && own {
					t.Fatal(err)
				}
				a.cut.away.Store(true)
				if own {
					late.Report(outcome.Outcome{Class: outcome.OK})
					a.told(weir.Call{}, hinted(10*time.Minute).O)
				}
				pass(5 * sec)
				if _, err := b.Resume(pause.All(), false); err != nil {
					t.Error(err)
				}
				pass(5 * sec)
				if a.goes(weir.Call{}) || !b.goes(weir.Call{}) {
					t.Error("who cannot hear of a lift keeps his pause, and the others go")
				}
				if again {
					_ = a.Pause(pause.OfOperation("default"), time.Hour, false)
				}
				pass(sec)
				a.cut.away.Store(false)
				pass(2 * heardBy)
				for i, x := range []*peer{a, b} {
					if x.goes(weir.Call{}) == again {
						t.Errorf("process %d is held: %v; ordered again: %v", i, !again, again)
					}
				}
			})
		}
	}
}

// A lift by a process that cannot reach the store applies there immediately, and elsewhere once the store has it.
func TestALiftWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := known(t)
		a, b := join(t, store, ofAll(), fleet.Options{}), join(t, store, ofAll(), fleet.Options{})
		pass(sec)
		a.told(weir.Call{}, hinted(10*time.Minute).O)
		pass(heardBy)
		b.cut.away.Store(true)
		if n, err := b.Resume(pause.OfOperation("default"), false); n != 1 || err != nil {
			t.Errorf("lifted %d, %v", n, err)
		}
		pass(10 * sec)
		if !b.goes(weir.Call{}) || a.goes(weir.Call{}) {
			t.Error("a lift holds where it was ordered, and cannot have been heard elsewhere")
		}
		b.cut.away.Store(false)
		pass(2 * heardBy)
		if !b.goes(weir.Call{}) || !a.goes(weir.Call{}) {
			t.Error("the lift was not heard")
		}
	})
}

// Calls that wait for the end of a pause proceed within a second when it is lifted, in every kind of queue.
func TestThoseWhoWaitHearOfALift(t *testing.T) {
	shapes := map[string]limit.Limit{
		"bucket":   rate("l", 20, sec, 1),
		"rolling":  but(rate("l", 20, sec, 0), func(l *limit.Limit) { l.Shape = limit.Rolling }),
		"calendar": but(limit.Limit{Name: "l", Shape: limit.Calendar}, func(l *limit.Limit) { l.Amount, l.Every = 20, bucket.Second }),
	}
	for name, l := range shapes {
		for _, local := range []bool{false, true} {
			for _, fair := range []bool{false, true} {
				for _, of := range []pause.Subject{pause.OfLimits("l"), pause.OfOperation("default"), pause.OfPool("p"), pause.All()} {
					t.Run(strings.Join([]string{name, map[bool]string{false: "shared", true: "local"}[local], map[bool]string{true: "fair"}[fair], of.String()}, " "), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							l.Local = local
							p := steady(l)
							if fair {
								p = inTurn(l)
							}
							p.MaxWait = time.Hour
							store := known(t)
							a, b := join(t, store, p, fleet.Options{}), join(t, store, p, fleet.Options{})
							pass(3 * sec)
							if err := a.Pause(of, 30*time.Minute, false); err != nil {
								t.Fatal(err)
							}
							pass(heardBy)
							var wg sync.WaitGroup
							var mu sync.Mutex
							var last time.Duration
							c := from("p")
							begin := clock.System.Now()
							for range 10 {
								wg.Go(func() {
									q, err := b.Acquire(t.Context(), c)
									if err != nil {
										t.Error(err)
										return
									}
									mu.Lock()
									last = max(last, since(begin))
									mu.Unlock()
									q.Report(outcome.Outcome{Class: outcome.OK})
								})
							}
							pass(10 * sec)
							if last != 0 {
								t.Fatalf("one went after %v, in the pause", last)
							}
							if _, err := a.Resume(of, false); err != nil {
								t.Fatal(err)
							}
							wg.Wait()
							if last > 10*sec+heardBy+2*sec { // to receive it, to check, and the turns of ten
								t.Errorf("the last went %v after the lift", last-10*sec)
							}
						})
					})
				}
			}
		}
	}
}

// Orders that would pause nothing are refused with a list of what exists.
func TestOrdersForWhatThereIsNot(t *testing.T) {
	u := open(t, handled(), weir.Options{})
	for want, of := range map[string]pause.Subject{
		`limit "put": unknown limit; want one of user, puts`:                        pause.OfLimits("put"),
		`key "a": limit puts has no keys; leave key out`:                            pause.OfLimit("puts", "user", "a"),
		`key "a": limit user has the scope user, not tenant`:                        pause.OfLimit("user", "tenant", "a"),
		`operation "del": api has no such operation; want one of default, get, put`: pause.OfOperation("del"),
		`pool: must not be empty`:                                                   pause.OfPool(""),
	} {
		if err := u.Pause(of, sec, false); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if n, err := u.Resume(of, false); n != 0 || err == nil || err.Error() != want {
			t.Errorf("lifted %d, %v, want %s", n, err, want)
		}
	}
	for _, d := range []time.Duration{-1, pause.Longest + 1} {
		if err := u.Pause(pause.All(), d, false); err == nil || !strings.Contains(err.Error(), "up to 31 days") {
			t.Errorf("%v: %v", d, err)
		}
	}
	if n, err := u.Resume(pause.OfPool("p"), false); n != 0 || err != nil {
		t.Errorf("nothing to lift: %d, %v", n, err)
	}
	if v := u.Look(0); v.Paused != 0 {
		t.Errorf("paused: %+v", v.Pauses)
	}
}
