package breaker_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A fleet records the calls of its methods.
type fleet struct {
	leads  bool
	failed map[string]int
	wanted []time.Duration
	moved  int
}

func (f *fleet) Leads(time.Duration) bool                           { return f.leads }
func (f *fleet) Failed(key string, _ time.Duration, _ outcome.Hint) { f.failed[key]++ }
func (f *fleet) Wanted(_ string, now time.Duration)                 { f.wanted = append(f.wanted, now) }
func (f *fleet) Moved(string)                                       { f.moved++ }

func member(c breaker.Config) (*breaker.Breaker, *fleet, *[]breaker.Change) {
	var told []breaker.Change
	b := breaker.New("up", c, func(c breaker.Change) { told = append(told, c) })
	f := &fleet{leads: true, failed: map[string]int{}}
	b.Join(f)
	return b, f, &told
}

func failing(b *breaker.Breaker, now time.Duration, n int) {
	for range n {
		p, _, _ := b.Admit(now)
		b.Report(now, p, outcome.Outcome{Class: outcome.Failed})
	}
}

func TestALedBreakerWaitsForItsLease(t *testing.T) {
	b, f, told := member(breaker.Config{Failures: 2, Open: 10 * time.Second, ProbeTimeout: 5 * time.Second, Successes: 1})
	now := time.Hour
	failing(b, now, 2)
	if f.failed["up"] != 2 || f.moved != 1 {
		t.Errorf("told of %v failures and %d moves, want 2 and 1", f.failed, f.moved)
	}
	if _, wait, ok := b.Admit(now + 4*time.Second); ok || wait != 6*time.Second || len(f.wanted) > 0 {
		t.Errorf("open: admitted %v, wait %v, wanted %v", ok, wait, f.wanted)
	}
	now += 10 * time.Second
	for range 5 {
		if _, wait, ok := b.Admit(now); ok || wait <= 0 || wait > time.Second {
			t.Errorf("after the open time: admitted %v, wait %v, want no and a short one", ok, wait)
		}
	}
	if !slices.Equal(f.wanted, []time.Duration{now}) {
		t.Errorf("wanted at %v, want once", f.wanted)
	}
	gen, ok := b.Adopt(now, b.State().Gen, breaker.State{Phase: breaker.HalfOpen, Lease: now + time.Second})
	if !ok || gen != b.State().Gen {
		t.Fatalf("adopted %v, generation %d", ok, gen)
	}
	p, _, ok := b.Admit(now)
	if _, _, again := b.Admit(now); !ok || !p.Probe || again {
		t.Errorf("with the lease: %v %v, and a second one: %v", ok, p.Probe, again)
	}
	b.Report(now, p, outcome.Outcome{Class: outcome.Canceled})
	if _, _, ok := b.Admit(now + time.Second); ok {
		t.Error("a probe began when the lease was over")
	}
	f.leads = false
	p, _, ok = b.Admit(now + time.Second)
	if !ok || !p.Probe {
		t.Error("without a fleet to lead it does not probe by itself")
	}
	b.Report(now+time.Second, p, outcome.Outcome{Class: outcome.Failed})
	if f.failed["up"] != 2 {
		t.Errorf("the failure of a probe is told as one of a closed breaker")
	}
	now += 15 * time.Second
	p, _, ok = b.Admit(now + time.Second)
	if !ok || !p.Probe {
		t.Error("without a fleet to lead it does not probe by itself")
	}
	b.Report(now+time.Second, p, outcome.Outcome{Class: outcome.OK})
	want := []breaker.Phase{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}
	for i, c := range *told {
		if i >= len(want) || c.To != want[i] {
			t.Errorf("told %v, want %v", *told, want)
		}
	}
}

func TestAdoptIsForTheGenerationItWasMeantFor(t *testing.T) {
	b, f, told := member(breaker.Config{Failures: 2})
	gen := b.State().Gen
	open := breaker.State{Phase: breaker.Open, Why: breaker.FleetTripped, Until: 2 * time.Hour}
	p, _, _ := b.Admit(time.Hour)
	if _, ok := b.Adopt(time.Hour, gen+1, open); ok {
		t.Error("adopted for another generation")
	}
	next, ok := b.Adopt(time.Hour, gen, open)
	if !ok || next != gen+1 {
		t.Fatalf("adopted %v as generation %d", ok, next)
	}
	if _, ok := b.Adopt(time.Hour, gen, breaker.State{}); ok {
		t.Error("adopted for a generation that is over")
	}
	b.Report(time.Hour, p, outcome.Outcome{Class: outcome.Failed})
	if b.State().Gen != next || f.moved > 0 || f.failed["up"] > 0 {
		t.Errorf("what the fleet did is told as the breaker's own: %+v", f)
	}
	open.Until = 3 * time.Hour
	if _, ok := b.Adopt(time.Hour, next, open); !ok || b.State().Until != 3*time.Hour {
		t.Error("a longer time was not adopted")
	}
	if len(*told) != 1 || (*told)[0].Why != breaker.FleetTripped {
		t.Errorf("told %v, want once that the fleet tripped", *told)
	}
	b.SetConfig(time.Hour, breaker.Config{Off: true})
	if _, ok := b.Adopt(time.Hour, b.State().Gen, open); ok {
		t.Error("a breaker that is off was opened")
	}
	open.Held = true
	if _, ok := b.Adopt(time.Hour, b.State().Gen, open); !ok {
		t.Error("a breaker that is off was not forced open")
	}
}

func TestTripOpensWhatIsClosed(t *testing.T) {
	b, f, told := member(breaker.Config{Failures: 9, Open: 10 * time.Second})
	b.Trip(time.Hour, outcome.Hint{Said: true, After: 40 * time.Second}, breaker.FleetTripped)
	b.Trip(time.Hour, outcome.Hint{}, breaker.FleetTripped)
	if s := b.State(); s.Phase != breaker.Open || s.Why != breaker.FleetTripped || s.Until != time.Hour+40*time.Second {
		t.Errorf("%+v", s)
	}
	if len(*told) != 1 || f.moved != 1 {
		t.Errorf("told %d times, moved %d times", len(*told), f.moved)
	}
	b.ForceClose(time.Hour)
	b.Trip(time.Hour, outcome.Hint{}, breaker.FleetTripped)
	b.SetConfig(time.Hour, breaker.Config{Off: true})
	b.Reset(time.Hour)
	b.Trip(time.Hour, outcome.Hint{}, breaker.FleetTripped)
	if s := b.State(); s.Phase != breaker.Closed {
		t.Errorf("what was forced closed, and what is off: %+v", s)
	}
}

func TestAGroupJoinsWithAllItsKeysButOther(t *testing.T) {
	g := breaker.NewGroup(2, breaker.Config{Failures: 50}, nil)
	g.For(0, "before")
	f := &fleet{leads: true, failed: map[string]int{}}
	g.Join(f)
	failing(g.For(1, "before"), 1, 1)
	failing(g.For(1, "after"), 1, 1)
	failing(g.For(1, "overflow"), 1, 1)
	if fmt.Sprint(f.failed) != "map[after:1 before:1]" {
		t.Errorf("told of the failures of %v", f.failed)
	}
	for key, b := range breaker.New("up", five, nil).All() {
		if key != "up" || b.Config().Failures != 5 {
			t.Errorf("a breaker lists %q, %+v", key, b.Config())
		}
	}
}

// A counter is a fleet that counts the calls of its methods.
type counter struct{ failed, wanted, moved atomic.Int64 }

func (c *counter) Leads(time.Duration) bool                   { return true }
func (c *counter) Failed(string, time.Duration, outcome.Hint) { c.failed.Add(1) }
func (c *counter) Wanted(string, time.Duration)               { c.wanted.Add(1) }
func (c *counter) Moved(string)                               { c.moved.Add(1) }

func TestEveryFailureIsToldOnce(t *testing.T) {
	const writers, each = 64, 100
	var f counter
	b := breaker.New("up", breaker.Config{Failures: 1 << 30}, nil) // a breaker that opened would stop counting
	b.Join(&f)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() { failing(b, time.Hour, each) })
	}
	all.Wait()
	if n := f.failed.Load(); n != writers*each {
		t.Errorf("told of %d failures, want %d", n, writers*each)
	}
}
