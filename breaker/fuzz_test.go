package breaker_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// FuzzState runs a history, two bytes per event, and checks the invariants: at most one probe, none before its time, and growing
// generations.
func FuzzState(f *testing.F) {
	f.Add(uint8(5), []byte{0, 1, 0, 3, 0, 3, 200, 0})
	f.Add(uint8(1), []byte{0, 0, 0, 11, 255, 0, 255, 0, 3, 9, 0, 5})
	f.Add(uint8(0x91), []byte{1, 0, 2, 27, 9, 6, 30, 0, 0, 0, 1, 7, 1, 15})
	f.Fuzz(func(t *testing.T, rules uint8, events []byte) {
		c := breaker.Config{
			Failures: int(rules & 7), Consecutive: int(rules >> 3 & 3), Share: float64(rules>>5&1) / 2, MinCalls: 3,
			Window: 20 * time.Second, CountThrottled: rules>>6&1 == 1, Off: rules>>7 == 1,
		}
		var h history
		for ; len(events) > 1; events = events[2:] {
			h.now += time.Duration(events[0]) * 100 * time.Millisecond
			h.step(t, c, events[1])
		}
	})
}

type history struct {
	s       breaker.State
	now     time.Duration
	permits []breaker.Ticket
	probe   breaker.Ticket // the latest one
	settled bool           // it was reported
	since   time.Duration
}

func (h *history) step(t *testing.T, c breaker.Config, event byte) {
	before, arg := h.s, int(event>>3)
	switch event & 7 {
	case 0, 1, 2:
		h.admit(t, c)
	case 3, 4, 5, 6:
		h.report(c, arg)
	case 7:
		d := time.Duration(arg>>2) * time.Second
		h.s = []breaker.State{h.s.ForceOpen(h.now, d), h.s.ForceClose(h.now), h.s.Reset(h.now), h.s}[arg&3]
	}
	if h.s.Gen < before.Gen || h.s.Gen > before.Gen+1 {
		t.Fatalf("generation went from %d to %d", before.Gen, h.s.Gen)
	}
	if h.s.Phase != before.Phase && h.s.Gen == before.Gen {
		t.Fatalf("%v became %v in the same generation", before.Phase, h.s.Phase)
	}
	if h.s.Probing && h.s.Phase != breaker.HalfOpen {
		t.Fatalf("a probe is out while %v", h.s.Phase)
	}
}

func (h *history) admit(t *testing.T, c breaker.Config) {
	before := h.s
	next, p, wait, ok := h.s.Admit(h.now, c)
	h.s = next
	switch {
	case !ok:
		if wait <= 0 || next != before || p != (breaker.Ticket{}) {
			t.Fatalf("refused with wait %v, permit %v", wait, p)
		}
		return
	case before.Phase == breaker.Open && h.now < before.Until:
		t.Fatalf("admitted at %v, open until %v", h.now, before.Until)
	case before.Phase == breaker.HalfOpen && !p.Probe:
		t.Fatal("admitted more than a probe while half-open")
	case p.Probe && before.Phase == breaker.HalfOpen && !h.settled && h.now < h.since+30*time.Second:
		t.Fatal("two probes at once")
	}
	if p.Probe {
		h.probe, h.settled, h.since = p, false, h.now
	}
	h.permits = append(h.permits, p)
}

func (h *history) report(c breaker.Config, arg int) {
	if len(h.permits) == 0 {
		return
	}
	p := h.permits[(len(h.permits)-1)*(arg&3)/3]
	class := outcome.Classes[arg>>2%len(outcome.Classes)]
	h.s = h.s.Report(h.now, c, p, outcome.Outcome{Class: class}, int64(arg))
	h.settled = h.settled || p == h.probe
}
