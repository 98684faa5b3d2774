package breakers

import (
	"context"
	"time"
)

// Run keeps the breakers in step with the fleet until ctx ends, and returns its
// cause. From then on each decides for itself; a probe that this process might have
// made is left to another.
func (b *Breakers) Run(ctx context.Context) error {
	defer b.leave(ctx)
	for ctx.Err() == nil {
		began := b.conf.Clock.Now()
		b.wait(ctx, began, b.Sync(ctx))
	}
	return context.Cause(ctx)
}

// Sync does one round: it tells the store what is new here, looks at what is new
// there if it is time to, and returns when to come again at the latest. Run calls
// it; who calls it himself drives the breakers by hand.
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
	return b.agree(ctx) // on what the failures of all add up to
}

// contact draws the conclusions from a round.
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
	case ctx.Err() != nil: // it is this process that leaves
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

// next is when there is something to do by itself.
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

// wait waits for the instant, or until there is news if the store can hear it, and
// in any case so long that rounds are not too frequent.
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

// leave gives back what the fleet lent to this process, if ctx was all that
// ended.
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
