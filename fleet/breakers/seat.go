package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

const (
	// grace is how long a process may hold the probe without a call to make it with. Afterwards other processes may
	// take it.
	grace = 2 * time.Second

	// spread is the time over which processes that want to probe spread their attempts, so that a thousand do not
	// come simultaneously.
	spread = 250 * time.Millisecond

	// fresh is how long a refused call indicates that more calls will come. Without one, the process lets other
	// processes probe first.
	fresh     = 2 * time.Second
	letOthers = 1500 * time.Millisecond

	// wantFor is how long after the last refused call a process tries to probe.
	wantFor = 5 * time.Minute
)

// A seat is the connection of one local breaker with the fleet.
type seat struct {
	b    *breaker.Breaker
	name string // label of the key
	page *page
	seen bool // in this round

	gen   int64         // generation of the fleet that the breaker follows
	own   uint32        // generation of the breaker since it follows
	until time.Duration // when the open time or the probe's deadline of gen has passed for certain
	late  time.Duration // delay of this process's attempt after that
	lease time.Duration // until when this process may begin a probe; 0 if it may not

	wanted time.Duration // when the breaker last refused a call that could have probed
	failed int64         // failures that the store has not counted yet
	since  time.Duration // time of the first of them
	hint   outcome.Hint
	full   bool // the fleet's failures have reached the maximum
}

// collect adds and removes seats to match the breakers of the process, and reads their notes.
func (b *Breakers) collect() {
	notes := b.mail.empty()
	for _, t := range b.seats {
		t.seen = false
	}
	for key, local := range b.local.All() {
		if key == breaker.Other && b.conf.Scope != "" {
			continue
		}
		t := b.seats[key]
		if t == nil || t.b != local {
			t = b.seat(key, local)
		}
		t.seen = true
		if n := notes[key]; n != nil {
			t.hear(n)
		}
	}
	for key, t := range b.seats {
		if !t.seen {
			delete(b.seats, key)
		}
	}
}

func (b *Breakers) seat(key string, local *breaker.Breaker) *seat {
	t := &seat{b: local, name: label(key)}
	t.page = b.pageOf(t.name)
	b.seats[key] = t
	return t
}

func (t *seat) hear(n *note) {
	if n.failed > 0 {
		if t.failed == 0 {
			t.since = n.since
		}
		t.failed += n.failed
		t.hint = n.hint
	}
	t.wanted = max(t.wanted, n.wanted)
}

// tries returns when this process will try to take the probe.
func (t *seat) tries() time.Duration {
	if t.wanted == 0 || t.gen == 0 || t.until == breaker.Forever {
		return breaker.Forever
	}
	at := t.until + t.late
	if at-t.wanted > fresh {
		at += letOthers + 4*t.late
	}
	if at-t.wanted > wantFor {
		return breaker.Forever
	}
	return at
}
