package breakers

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// far is a store with latency. It executes some calls long after their caller has left.
type far struct {
	fleet.Store
	rtt  time.Duration // latency in each direction is from 0 to twice rtt
	late float64       // share of calls that are executed late
	away atomic.Bool
}

var errLate = errors.New("left before the store was done")

func (f *far) trip(ctx context.Context, do func() error) error {
	if f.away.Load() {
		return errAway
	}
	if rand.Float64() < f.late {
		d := time.Duration(rand.Int64N(int64(3 * time.Second)))
		time.AfterFunc(d, func() { _ = do() })
		_ = clock.System.Sleep(ctx, min(d, time.Second))
		return errLate
	}
	if err := clock.System.Sleep(ctx, rand.N(2*f.rtt+1)); err != nil {
		return err
	}
	err := do()
	if slept := clock.System.Sleep(ctx, rand.N(2*f.rtt+1)); slept != nil {
		return slept
	}
	return err
}

func (f *far) Take(ctx context.Context, a *fleet.Ask) error {
	sent := *a
	sent.Grants = nil
	err := f.trip(ctx, func() error { return f.Store.Take(context.Background(), &sent) })
	if err == nil {
		*a = sent
	}
	return err
}

func (f *far) Load(ctx context.Context, group string, names []string) (r []fleet.Record, now time.Time, err error) {
	var records []fleet.Record
	var at time.Time
	if err = f.trip(ctx, func() (err error) {
		records, at, err = f.Store.Load(context.Background(), group, names)
		return err
	}); err != nil {
		return nil, time.Time{}, err
	}
	return records, at, nil
}

func (f *far) Swap(ctx context.Context, group string, in fleet.Record) (fleet.Record, bool, error) {
	var r fleet.Record
	var ok bool
	if err := f.trip(ctx, func() (err error) {
		r, ok, err = f.Store.Swap(context.Background(), group, in)
		return err
	}); err != nil {
		return fleet.Record{}, false, err
	}
	return r, ok, nil
}

// A member is a process of a running fleet.
type member struct {
	b    *breaker.Breaker
	s    *Breakers
	stop context.CancelFunc
}

func run(store fleet.Store, c breaker.Config, n int, all *sync.WaitGroup) []member {
	var members []member
	for range n {
		ctx, stop := context.WithCancel(context.Background())
		m := member{b: breaker.New("", c, nil), stop: stop}
		m.s = New(Config{Store: store, Group: "up"}, m.b)
		all.Go(func() { _ = m.s.Run(ctx) })
		members = append(members, m)
	}
	return members
}

func count(members []member, phase breaker.Phase) (n int) {
	for _, m := range members {
		if m.b.State().Phase == phase {
			n++
		}
	}
	return n
}

func TestRunningFleetTripsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &far{Store: fleet.NewMemory(time.Now), rtt: 3 * time.Millisecond}
		var all sync.WaitGroup
		fleet := run(store, breaker.Config{Failures: 50, Open: 5 * time.Second}, 50, &all)
		time.Sleep(3 * time.Second)
		for _, m := range fleet {
			all.Go(func() {
				now := clock.System.Now()
				p, _, _ := m.b.Admit(now)
				m.b.Report(now, p, outcome.Outcome{Class: outcome.Failed})
			})
		}
		time.Sleep(2 * time.Second)
		if n := count(fleet, breaker.Open); n != 50 {
			t.Errorf("%d of 50 open 2s after each had one failure", n)
		}
		for _, m := range fleet {
			m.stop()
		}
		all.Wait()
	})
}

// A thousand goroutines in fifty processes make one probe at a time, and only one per open period if it fails.
func TestRunningFleetProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &far{Store: fleet.NewMemory(time.Now), rtt: 5 * time.Millisecond}
		var all sync.WaitGroup
		fleet := run(store, breaker.Config{Failures: 5, Open: 5 * time.Second, Successes: 1}, 50, &all)
		time.Sleep(2 * time.Second)
		var out, most, probes atomic.Int64
		ctx, stop := context.WithCancel(context.Background())
		for i := range 1000 {
			m := fleet[i%len(fleet)]
			all.Go(func() {
				for ctx.Err() == nil {
					p, _, ok := m.b.Admit(clock.System.Now())
					if ok && p.Probe {
						probes.Add(1)
						if n := out.Add(1); n > most.Load() {
							most.Store(n)
						}
						time.Sleep(100 * time.Millisecond)
						out.Add(-1)
					}
					if ok {
						m.b.Report(clock.System.Now(), p, outcome.Outcome{Class: outcome.Failed})
					}
					time.Sleep(rand.N(400 * time.Millisecond))
				}
			})
		}
		time.Sleep(31 * time.Second)
		stop()
		for _, m := range fleet {
			m.stop()
		}
		all.Wait()
		if most.Load() != 1 || probes.Load() < 5 || probes.Load() > 6 {
			t.Errorf("%d probes, %d at once; want one after each of about 5 open periods", probes.Load(), most.Load())
		}
	})
}

// The fleet does not allow a probe twice because of calls to the store that are executed seconds after their
// timeout.
func TestLateCallsLendNoProbeTwice(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			store := &far{Store: fleet.NewMemory(time.Now), rtt: 20 * time.Millisecond, late: 0.1}
			var all sync.WaitGroup
			fleet := run(store, breaker.Config{Failures: 5, Open: 2 * time.Second, ProbeTimeout: time.Second}, 12, &all)
			var led, probes atomic.Int64
			ctx, stop := context.WithCancel(context.Background())
			for i := range 48 {
				m := fleet[i%len(fleet)]
				all.Go(func() {
					for ctx.Err() == nil {
						now := clock.System.Now()
						p, _, ok := m.b.Admit(now)
						mine := ok && p.Probe && m.s.Leads(now)
						if mine {
							probes.Add(1)
							if led.Add(1) > 1 {
								t.Errorf("two probes at once")
							}
							time.Sleep(rand.N(900 * time.Millisecond))
							led.Add(-1)
						}
						if ok {
							m.b.Report(clock.System.Now(), p, outcome.Outcome{Class: outcome.Class(rand.IntN(3))})
						}
						time.Sleep(rand.N(200 * time.Millisecond))
					}
				})
			}
			time.Sleep(time.Minute)
			stop()
			for _, m := range fleet {
				m.stop()
			}
			all.Wait()
			time.Sleep(5 * time.Second) // for late calls
			if probes.Load() < 5 {
				t.Errorf("%d probes in a minute", probes.Load())
			}
		})
	}
}

func TestRunTellsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &far{Store: fleet.NewMemory(time.Now)}
		var lost, back atomic.Int64
		b := breaker.New("", breaker.Config{}, nil)
		s := New(Config{
			Store: store, Group: "up",
			Lost: func(err error) {
				if !errors.Is(err, errAway) {
					t.Errorf("lost because of %v", err)
				}
				lost.Add(1)
			},
			Back: func() { back.Add(1) },
		}, b)
		ctx, stop := context.WithCancelCause(t.Context())
		over := make(chan error)
		go func() { over <- s.Run(ctx) }()
		time.Sleep(5 * time.Second)
		if !s.Leads(clock.System.Now()) {
			t.Error("the fleet does not lead")
		}
		store.away.Store(true)
		time.Sleep(4 * time.Second)
		if s.Leads(clock.System.Now()) || lost.Load() != 1 {
			t.Errorf("the fleet leads although the store is away; told %d times", lost.Load())
		}
		store.away.Store(false)
		time.Sleep(2 * time.Second)
		if !s.Leads(clock.System.Now()) || back.Load() != 1 {
			t.Errorf("the fleet does not lead although the store is back; told %d times", back.Load())
		}
		why := errors.New("enough")
		stop(why)
		if err := <-over; err != why || s.Leads(clock.System.Now()) {
			t.Errorf("ended with %v, leads %v", err, s.Leads(clock.System.Now()))
		}
	})
}

// A process that leaves returns its probe.
func TestWhoLeavesGivesTheProbeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		fleet := run(fleet.NewMemory(time.Now), breaker.Config{Open: time.Second}, 2, &all)
		time.Sleep(2 * time.Second)
		a, b := fleet[0], fleet[1]
		a.b.ForceOpen(clock.System.Now(), time.Second)
		time.Sleep(2 * time.Second)
		a.b.Admit(clock.System.Now()) // asks for the probe
		time.Sleep(500 * time.Millisecond)
		if s := a.b.State(); s.Lease <= clock.System.Now() {
			t.Fatalf("a was not lent the probe: %+v", s)
		}
		a.stop()
		time.Sleep(1600 * time.Millisecond)
		b.b.Admit(clock.System.Now())
		time.Sleep(400 * time.Millisecond)
		if p, _, ok := b.b.Admit(clock.System.Now()); !ok || !p.Probe {
			t.Error("b was not lent the probe that a gave back")
		}
		b.stop()
		all.Wait()
	})
}

// While there are no events, a process reads the store once a second.
func TestAQuietFleetAsksLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		fleet := run(fleet.NewMemory(time.Now), breaker.Config{}, 1, &all)
		time.Sleep(1000 * time.Second)
		if s := fleet[0].s.Stats(); s.Loads < 900 || s.Loads > 1100 || s.Takes+s.Swaps+s.Failed > 0 {
			t.Errorf("%+v in 1000s, want about 1000 looks", s)
		}
		fleet[0].stop()
		all.Wait()
	})
}

// Thousands of failures need few calls.
func TestManyFailuresAreFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		fleet := run(fleet.NewMemory(time.Now), breaker.Config{Failures: 1 << 30}, 1, &all) // the store counts no failures of an open breaker
		time.Sleep(2 * time.Second)
		for range 10_000 {
			now := clock.System.Now()
			p, _, _ := fleet[0].b.Admit(now)
			fleet[0].b.Report(now, p, outcome.Outcome{Class: outcome.Failed})
			time.Sleep(time.Millisecond)
		}
		if s := fleet[0].s.Stats(); s.Takes > 210 {
			t.Errorf("%d calls for 10,000 failures in 10s, want 20 a second at most", s.Takes)
		}
		fleet[0].stop()
		all.Wait()
	})
}
