package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

const (
	// grace is how long a process that was lent the probe may wait for a call to
	// make it with. Then others have their turn.
	grace = 2 * time.Second

	// spread is over how long processes that want to probe come, so that a
	// thousand of them do not come at once.
	spread = 250 * time.Millisecond

	// fresh is how long a call that was refused stands for more to come. A process
	// that had none for longer lets others go first.
	fresh     = 2 * time.Second
	letOthers = 1500 * time.Millisecond

	// wantFor is how long a process tries to probe after the last call that would
	// have been the probe.
	wantFor = 5 * time.Minute
)

// A seat is the place of one breaker of this process in the fleet.
type seat struct {
	b    *breaker.Breaker
	name string // the key as it stands in the store
	page *page
	seen bool // in this round

	gen   int64         // of the fleet, that the breaker follows
	own   uint32        // the breaker's own generation since
	until time.Duration // when gen's open time or its probe's deadline is over, for certain
	late  time.Duration // how long after that to come
	lease time.Duration // until when this process may begin a probe; 0 if it may not

	wanted time.Duration // when a call last would have been the probe
	failed int64         // failures that the store does not know of yet
	since  time.Duration // the first of them
	hint   outcome.Hint
	full   bool // the fleet's failures are too many
}

// collect brings the seats up to date with the breakers that there are, and hears
// what they have to say.
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

// tries is when this process will try to be the one that probes.
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
