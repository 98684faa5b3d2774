package breakers

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

func TestFiftyThatEachSeeOneFailureTripTogether(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, breaker.Config{Failures: 50}, 50)
		w.pass(2*time.Second, nil)
		for _, p := range w.all {
			w.pass(time.Duration(w.r.Int64N(int64(300*time.Millisecond))), nil)
			if n := w.phases(); n[breaker.Closed] != 50 {
				w.fatal("%v before the 50th failure", n)
			}
			p.call(outcome.Failed)
		}
		if took := w.wait(breaker.Open, 10*time.Second, nil); took > 2*time.Second {
			w.fatal("all open after %v, want 2s", took)
		}
		for _, p := range w.all {
			if len(p.changes) != 1 || p.changes[0].Why != breaker.FleetTripped {
				w.fatal("process %d was told %v, want once that the fleet tripped", p.n, p.changes)
			}
		}
	}
}

func TestFortyNineOfFiftyDoNot(t *testing.T) {
	w := newWorld(t, 1, breaker.Config{Failures: 50}, 50)
	w.pass(2*time.Second, nil)
	for _, p := range w.all[1:] {
		p.call(outcome.Failed)
	}
	w.pass(70*time.Second, nil)
	for _, p := range w.all[1:] {
		p.call(outcome.Failed)
	}
	w.pass(5*time.Second, nil)
	if n := w.phases(); n[breaker.Closed] != 50 {
		t.Fatalf("%v closed, open, half-open; 49 failures a window must not open", n)
	}
}

func TestRecoveryClosesAllWithinTwoSeconds(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, breaker.Config{Failures: 5}, 50)
		w.pass(2*time.Second, nil)
		w.down = true
		if took := w.wait(breaker.Open, 10*time.Second, w.calls); took > 2*time.Second {
			w.fatal("all open after %v", took)
		}
		w.pass(100*time.Second, w.calls) // probes fail
		w.down = false
		for w.phases()[breaker.Closed] == 0 {
			w.step()
			w.calls()
		}
		if took := w.wait(breaker.Closed, 10*time.Second, w.calls); took > 2*time.Second {
			w.fatal("all closed %v after the first, want 2s", took)
		}
	}
}

// prober makes the upstream fail while the fleet is open, and counts the probes.
func (w *world) prober() (count func() int) {
	n := 0
	w.down = true
	return func() int {
		for _, p := range w.all {
			if p.dead {
				continue
			}
			permit, _, ok := p.b.Admit(p.now())
			if ok && permit.Probe {
				n++
			}
			if ok {
				p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.Failed})
			}
		}
		return n
	}
}

func TestAThousandProcessesProbeOnceAnOpenPeriod(t *testing.T) {
	w := newWorld(t, 7, breaker.Config{Failures: 5, Open: 10 * time.Second, Successes: 1}, 1000)
	w.pass(2*time.Second, nil)
	probes := w.prober()
	w.wait(breaker.Open, 3*time.Second, func() { probes() })
	for period := range 4 {
		before := probes()
		w.pass(10*time.Second+spread+tick, func() { probes() })
		if n := probes() - before; n != 1 {
			t.Fatalf("period %d: %d probes, want 1", period, n)
		}
	}
	var swaps, conflicts int64
	for _, p := range w.all {
		s := p.s.Stats()
		swaps, conflicts = swaps+s.Swaps, conflicts+s.Conflicts
	}
	if swaps > 200 {
		t.Errorf("%d swaps (%d conflicts) for 5 open periods of 1000 processes", swaps, conflicts)
	}
}

func TestAKilledProberIsReplacedAfterItsDeadline(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed, breaker.Config{Failures: 3, Open: 5 * time.Second, ProbeTimeout: 7 * time.Second, Successes: 1}, 10)
		w.pass(2*time.Second, nil)
		w.down = true
		w.wait(breaker.Open, 3*time.Second, w.calls)
		var killed time.Duration
		for killed == 0 {
			w.step()
			for _, p := range w.all {
				if permit, _, ok := p.b.Admit(p.now()); ok && permit.Probe {
					p.dead, killed = true, w.now
				}
			}
		}
		var again time.Duration
		for again == 0 {
			w.step()
			for _, p := range w.all {
				if p.dead {
					continue
				}
				if _, _, ok := p.b.Admit(p.now()); ok {
					again = w.now - killed
					break
				}
			}
		}
		if least, most := 7*time.Second, 7*time.Second+grace+2*time.Second; again < least || again > most {
			w.fatal("the next probe came %v after a lost one, want %v to %v", again, least, most)
		}
	}
}

func TestWithoutAStoreEachDecidesForItself(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, breaker.Config{Failures: 3, Open: 5 * time.Second, Successes: 1}, 5)
		w.pass(2*time.Second, nil)
		w.trouble = func(*process) error { return errAway }
		w.pass(5*time.Second, nil)
		a, b := w.all[0], w.all[1]
		for range 3 {
			a.call(outcome.Failed)
		}
		b.call(outcome.Failed)
		if a.b.State().Phase != breaker.Open || b.b.State().Phase != breaker.Closed {
			w.fatal("a %v, b %v: want a alone open", a.b.State().Phase, b.b.State().Phase)
		}
		w.pass(5*time.Second, nil)
		if !a.call(outcome.OK) || a.b.State().Phase != breaker.Closed {
			w.fatal("a does not probe by itself when its time is over: %v", a.b.State().Phase)
		}
		for range 3 {
			a.call(outcome.Failed)
		}
		w.trouble = nil
		if took := w.wait(breaker.Open, 4*time.Second, nil); took > 2*poll+poll {
			w.fatal("what a decided alone was known to all after %v", took)
		}
	}
}

// If the store becomes unreachable while the fleet is open, every process can recover.
func TestWithoutAStoreAnOpenFleetFindsOutAlone(t *testing.T) {
	w := newWorld(t, 3, breaker.Config{Failures: 3, Open: 5 * time.Second, Successes: 1}, 20)
	w.pass(2*time.Second, nil)
	w.down = true
	w.wait(breaker.Open, 3*time.Second, w.calls)
	w.down, w.trouble = false, func(*process) error { return errAway }
	w.wait(breaker.Closed, 10*time.Second, w.calls)
	w.trouble = nil
	w.pass(5*time.Second, func() {
		w.calls()
		if n := w.phases(); n[breaker.Closed] < 10 {
			t.Fatalf("%v closed, open, half-open: the store's return shut them out", n)
		}
	})
	w.wait(breaker.Closed, time.Second, w.calls)
}

func TestForcedByHandIsForcedForAll(t *testing.T) {
	w := newWorld(t, 5, breaker.Config{Failures: 3}, 10)
	w.pass(2*time.Second, nil)
	a, b := w.all[2], w.all[7]

	a.b.ForceOpen(a.now(), 0)
	if took := w.wait(breaker.Open, 3*time.Second, nil); took > 2*time.Second {
		t.Errorf("opened for all after %v", took)
	}
	w.pass(time.Hour, w.calls)
	if n := w.phases(); n[breaker.Open] != 10 {
		t.Errorf("%v closed, open, half-open: forced open without an end", n)
	}

	b.b.ForceClose(b.now())
	w.wait(breaker.Closed, 2*time.Second, nil)
	w.down = true
	w.pass(time.Minute, w.calls)
	if n := w.phases(); n[breaker.Closed] != 10 {
		t.Errorf("%v closed, open, half-open: forced closed", n)
	}
	for _, p := range w.all {
		if s := p.b.State(); !s.Held || s.Why != breaker.Forced {
			t.Errorf("process %d: held %v, why %v", p.n, s.Held, s.Why)
		}
	}

	a.b.Reset(a.now())
	w.pass(2*time.Second, nil)
	if took := w.wait(breaker.Open, 4*time.Second, w.calls); took > 2*time.Second {
		t.Errorf("after a reset failures open it after %v", took)
	}
	for _, p := range w.all {
		for i := 1; i < len(p.changes); i++ {
			if c, d := p.changes[i-1], p.changes[i]; c.To != d.From {
				t.Errorf("process %d: told of %v and then of %v", p.n, c, d)
			}
		}
		if len(p.changes) != 4 {
			t.Errorf("process %d was told of %d changes, want 4: %v", p.n, len(p.changes), p.changes)
		}
	}
}

func TestForcedOpenForATimeIsProbedThen(t *testing.T) {
	w := newWorld(t, 6, breaker.Config{Successes: 1}, 10)
	w.pass(2*time.Second, nil)
	a := w.all[0]
	a.b.ForceOpen(a.now(), time.Minute)
	begin := w.now
	w.wait(breaker.Open, 2*time.Second, nil)
	for w.phases()[breaker.Closed] == 0 {
		w.step()
		w.calls()
	}
	if took := w.now - begin; took < time.Minute || took > time.Minute+time.Second {
		t.Errorf("closed after %v, want a minute", took)
	}
	w.wait(breaker.Closed, 2*time.Second, nil)
}
