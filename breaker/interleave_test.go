package breaker_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A meeting is a fleet that leads nothing. It is called by a call that has read the open breaker and has not yet changed it. The
// function then simulates another goroutine.
type meeting struct {
	fleet
	then func()
}

func (m *meeting) Leads(time.Duration) bool {
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return false
}

// A caller that finds the open time over, and loses the race for the probe, is refused.
func TestWhoLosesTheRaceForTheProbeIsRefused(t *testing.T) {
	b := breaker.New("up", breaker.Config{Failures: 1, Open: time.Second, Successes: 1}, nil)
	m := &meeting{fleet: fleet{failed: map[string]int{}}}
	b.Join(m)
	failing(b, 0, 1)

	var first breaker.Ticket
	m.then = func() {
		var ok bool
		if first, _, ok = b.Admit(time.Second); !ok || !first.Probe {
			t.Errorf("the first one: admitted %v as %+v, want the probe", ok, first)
		}
	}
	if p, wait, ok := b.Admit(time.Second); ok || p != (breaker.Ticket{}) || wait <= 0 {
		t.Errorf("the second one: admitted %v as %+v, wait %v; want a refusal", ok, p, wait)
	}
	b.Report(time.Second, first, outcome.Outcome{Class: outcome.OK})
	if s := b.State(); s.Phase != breaker.Closed {
		t.Errorf("%v after the good probe, want it closed", s.Phase)
	}
}

// The race may also be lost to a complete probe: begun, failed and reported.
func TestWhoComesAfterTheProbeHasFailedIsRefused(t *testing.T) {
	b := breaker.New("up", breaker.Config{Failures: 1, Open: time.Second}, nil)
	m := &meeting{fleet: fleet{failed: map[string]int{}}}
	b.Join(m)
	failing(b, 0, 1)
	m.then = func() {
		p, _, _ := b.Admit(time.Second)
		b.Report(time.Second, p, outcome.Outcome{Class: outcome.Failed})
	}
	if _, wait, ok := b.Admit(time.Second); ok || wait != time.Second {
		t.Errorf("admitted %v, wait %v; want a refusal for another second", ok, wait)
	}
}
