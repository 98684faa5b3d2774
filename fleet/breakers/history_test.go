package breakers

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/outcome"
)

// A flight is an attempt in progress.
type flight struct {
	p      *process
	permit breaker.Ticket
	end    time.Duration
	until  time.Duration // the deadline of the probe, if the fleet allowed it
}

// A history is a fleet with random events.
type history struct {
	*world
	flights []flight
	apart   map[*process]time.Duration // processes that cannot reach the store until this time
	gone    time.Duration              // the store is unreachable until this time
	probes  int                        // probes that the fleet allowed
}

func newHistory(t *testing.T, seed uint64) *history {
	c := breaker.Config{
		Failures: 3, Open: 5 * time.Second, FirstOpen: 2 * time.Second, ProbeTimeout: 4 * time.Second, Successes: 1,
	}
	h := &history{world: newWorld(t, seed, c, 0), apart: map[*process]time.Duration{}}
	h.cfg.Successes = 1 + h.r.IntN(3)
	for range 1 + h.r.IntN(9) {
		h.start()
	}
	h.trouble = func(p *process) error {
		if h.now < h.gone || h.now < h.apart[p] || h.r.IntN(40) == 0 {
			return errAway
		}
		return nil
	}
	h.lost = func(p *process) error {
		if h.r.IntN(40) == 0 {
			return errAway
		}
		return nil
	}
	if h.r.IntN(3) == 0 {
		h.slow = time.Duration(1 + h.r.Int64N(int64(100*time.Millisecond)))
	}
	return h
}

// happen causes one random event.
func (h *history) happen() {
	span := func(d time.Duration) time.Duration { return time.Duration(h.r.Int64N(int64(d))) }
	switch h.r.IntN(1000) {
	case 0, 1, 2, 3:
		h.down = !h.down
	case 4:
		h.gone = h.now + span(20*time.Second)
	case 5, 6:
		h.apart[h.all[h.r.IntN(len(h.all))]] = h.now + span(10*time.Second)
	case 7, 8:
		h.kill(h.all[h.r.IntN(len(h.all))])
	}
}

func (h *history) kill(p *process) {
	if p.dead {
		return
	}
	p.dead = true
	h.start()
}

// traffic starts and ends calls.
func (h *history) traffic() {
	for _, p := range h.all {
		if !p.dead && h.r.IntN(4) == 0 {
			h.begin(p)
		}
	}
	keep := h.flights[:0]
	for _, f := range h.flights {
		if h.now < f.end {
			keep = append(keep, f)
			continue
		}
		if !f.p.dead {
			f.p.b.Report(f.p.now(), f.permit, h.outcome())
		}
	}
	h.flights = keep
}

func (h *history) outcome() outcome.Outcome {
	switch {
	case h.r.IntN(30) == 0:
		return outcome.Outcome{Class: outcome.Canceled}
	case h.down:
		return outcome.Outcome{Class: outcome.Failed}
	}
	return outcome.Outcome{Class: outcome.OK}
}

func (h *history) begin(p *process) {
	permit, _, ok := p.b.Admit(p.now())
	if !ok {
		return
	}
	f := flight{p: p, permit: permit, end: h.now + time.Duration(h.r.Int64N(int64(300*time.Millisecond)))}
	if h.r.IntN(10) == 0 {
		f.end = h.now + time.Duration(h.r.Int64N(int64(8*time.Second))) // perhaps after the deadline
	}
	if permit.Probe && p.s.Leads(p.now()) {
		f.until = h.now + h.cfg.ProbeTimeout
		h.probes++
		h.onlyOne(p)
	}
	h.flights = append(h.flights, f)
}

// onlyOne fails if the fleet allows a probe while another is in progress. A probe that has passed its deadline does
// not count.
func (h *history) onlyOne(p *process) {
	for _, f := range h.flights {
		if h.now < f.end && h.now < f.until {
			h.fatal("process %d probes while %d does, until %v (deadline %v, dead: %v)", p.n, f.p.n, f.end, f.until, f.p.dead)
		}
	}
}

func TestOneProbeInTheWholeFleet(t *testing.T) {
	probes := 0
	for seed := range uint64(raced.Of(1000, 50)) {
		h := newHistory(t, seed)
		h.pass(45*time.Second, func() { h.happen(); h.traffic() })
		probes += h.probes
		h.down, h.gone, h.apart, h.trouble, h.lost = false, 0, nil, nil, nil
		h.wait(breaker.Closed, time.Minute, h.traffic)
	}
	if probes < raced.Of(4000, 150) {
		t.Errorf("%d probes in all histories; they prove little", probes)
	}
	t.Logf("%d probes", probes)
}
