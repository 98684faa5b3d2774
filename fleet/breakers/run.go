package breakers

import (
	"context"
	"time"
)

// Run synchronizes the breakers with the fleet until ctx ends, and returns its cause. Afterwards each breaker
// decides for itself, and another process may take over this process's probe.
func (b *Breakers) Run(ctx context.Context) error {
	defer b.leave(ctx)
	for ctx.Err() == nil {
		began := b.conf.Clock.Now()
		b.wait(ctx, began, b.Sync(ctx))
	}
	return context.Cause(ctx)
}

// Sync does one round. It writes local changes to the store, and reads the store if it is time to. It returns the
// latest time for the next round. Run calls it. Callers that do not use Run call it themselves.
func (b *Breakers) Sync(ctx context.Context) (next time.Duration) {
	b.turn.Lock()
	defer b.turn.Unlock()
	err := b.round(ctx)
	b.contact(ctx, err)
	return b.next()
}

func (b *Breakers) round(ctx context.Context) error {
	b.collect()
	b.returns = b.fails >= mostLost || !b.met
	if b.fails > 0 || b.conf.Clock.Now() >= b.pullAt {
		if err := b.pull(ctx); err != nil {
			return err
		}
	}
	if err := b.agree(ctx); err != nil {
		return err
	}
	if err := b.push(ctx); err != nil {
		return err
	}
	return b.agree(ctx) // the sum of all failures may open a breaker
}

// contact evaluates the result of a round.
func (b *Breakers) contact(ctx context.Context, err error) {
	now := b.conf.Clock.Now()
	switch {
	case err == nil:
		away := b.fails >= mostLost
		b.fails, b.met = 0, true
		b.leads.Store(int64(now + lead))
		if away && b.conf.Back != nil {
			b.conf.Back()
		}
	case ctx.Err() != nil: // this process leaves
	default:
		b.counts.failed.Add(1)
		b.fails++
		b.pullAt = now + again + b.upTo(again)
		if b.fails >= mostLost {
			b.leads.Store(0)
			b.pullAt = now + poll/2 + b.upTo(poll)
		}
		if b.fails == mostLost && b.conf.Lost != nil {
			b.conf.Lost(err)
		}
	}
}

// next returns the time of the next scheduled work.
func (b *Breakers) next() time.Duration {
	at := b.pullAt
	if b.fails > 0 {
		return at
	}
	now := b.conf.Clock.Now()
	for _, t := range b.seats {
		at = min(at, t.tries())
		if t.lease > now {
			at = min(at, t.lease)
		}
	}
	return at
}

// wait waits until the given time, or for a note if the store is reachable. It ensures a minimum time between
// rounds.
func (b *Breakers) wait(ctx context.Context, began, until time.Duration) {
	if b.fails == 0 {
		nap, cancel := context.WithCancel(ctx)
		defer cancel()
		if b.mail.onNews(cancel) {
			_ = b.conf.Clock.Sleep(nap, until-b.conf.Clock.Now())
		}
		b.mail.onNews(nil)
		until = began + gap
	}
	_ = b.conf.Clock.Sleep(ctx, max(until, began+gap)-b.conf.Clock.Now())
}

// leave returns the probes of this process to the fleet, unless the store has failed.
func (b *Breakers) leave(ctx context.Context) {
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.met && b.fails == 0 {
		b.leaving = true
		_ = b.agree(context.WithoutCancel(ctx))
		b.leaving = false
	}
	b.leads.Store(0)
	b.pullAt = 0
}
