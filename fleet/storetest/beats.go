package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A process is the state of one process in a history that sends beats: the latest answer it accepted and its latest
// beat.
type process struct {
	seq, ack    int64
	part, until int64
	alone       bool
	gen         [2]int64 // per store, because stores number their generations independently
	forged      bool     // its latest beat shows a forged generation
	last        fleet.Beat
}

// beat sends a beat of a random process to both stores and compares the answers. The beat is either new or a repeat
// of the latest. Afterwards the process may ignore the answer, as if it were lost, or be gone because it left.
func (h *history) beat() error {
	name := fmt.Sprint("c", h.rng.IntN(5))
	p := h.beats[name]
	if p == nil {
		p = &process{}
		h.beats[name] = p
	}
	b := p.last
	if p.seq == 0 || h.rng.IntN(6) > 0 {
		b = h.next(p)
	}
	b.Group, b.Client = h.group, name
	p.last = b
	var s [2]fleet.Standing
	for i, store := range h.stores {
		var err error
		if !p.forged {
			b.Gen = p.gen[i]
		}
		if s[i], err = store.Beat(context.Background(), &b); err != nil {
			return fmt.Errorf("beat: %w", err)
		}
	}
	if s[0].Now.UnixMicro() != s[1].Now.UnixMicro() {
		return fmt.Errorf("beat: the clocks say %v and %v", s[0].Now, s[1].Now)
	}
	gens := [2]int64{s[0].Gen, s[1].Gen}
	s[1].Now, s[1].Gen = s[0].Now, s[0].Gen
	if s[0] != s[1] {
		return fmt.Errorf("beat %+v:\n\t%+v and\n\t%+v", b, s[0], s[1])
	}
	if b.Leave {
		delete(h.beats, name)
		return nil
	}
	if s[0].No > 0 && h.rng.IntN(4) > 0 {
		p.ack, p.gen, p.part, p.until = s[0].No, gens, s[0].Part, s[0].Until
	}
	return nil
}

// next returns the beat that follows the latest beat of p.
func (h *history) next(p *process) fleet.Beat {
	p.seq++
	if h.rng.IntN(20) == 0 {
		p.alone = !p.alone
	}
	silence := (200 + h.rng.Int64N(2000)) * 1000
	b := fleet.Beat{
		Seq: p.seq, Ack: p.ack, Part: p.part, Until: p.until, Silence: silence,
		Life: 3_000_000 + h.rng.Int64N(60_000_000), Wish: upTo(h.rng, 1e9), Alone: p.alone, Goes: h.rng.IntN(2) == 0,
		Window: time.Duration(upTo(h.rng, int64(24*time.Hour))).Microseconds(),
	}
	p.forged = false
	switch h.rng.IntN(20) {
	case 0:
		end := h.rng.IntN(3)
		b.Leave, b.Dead, b.Idle = true, end == 1, end == 2
	case 1:
		b.None = true
	case 2:
		b.Need = 1 + h.rng.Int64N(fleet.Whole)
	case 3:
		b.Wish = 0
	case 4:
		p.forged = true // it shows a part that an older memory of the store granted
		b.Part, b.Gen = h.rng.Int64N(fleet.Whole), h.rng.Int64N(3)
	case 5:
		b.Ack += 1_000_000 // it acknowledges an answer that the store has forgotten
	}
	return b
}
