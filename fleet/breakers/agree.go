package breakers

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A change is a new entry that this process proposes for a seat.
type change struct {
	seat  *seat
	entry entry
	own   uint32 // the generation of the breaker that changed
	adopt bool   // the breaker follows when the store has accepted the change
}

// swaps is how often a round repeats a write that conflicts with other processes.
const swaps = 5

// pull reads the store.
func (b *Breakers) pull(ctx context.Context) error {
	before := b.conf.Clock.Now()
	calling, cancel := b.calling(ctx)
	defer cancel()
	b.counts.loads.Add(1)
	records, present, err := b.conf.Store.Load(calling, b.conf.Group, b.names)
	if err != nil {
		return fmt.Errorf("read breakers: %w", err)
	}
	after := b.conf.Clock.Now()
	// The store read its clock between before and after.
	at := time.Duration(present.UnixMicro()) * time.Microsecond
	b.lo, b.hi = at-after, at+time.Microsecond-before
	b.looked, b.pullAt = after, after+poll/2+b.upTo(poll)
	return b.read(records, at)
}

func (b *Breakers) read(records []fleet.Record, at time.Duration) (err error) {
	for _, r := range records {
		for _, p := range b.pages {
			if p.name == r.Name {
				if e := p.read(r, at); e != nil {
					err = e
				}
			}
		}
	}
	return err
}

// agree makes every breaker follow the decisions of the fleet, and proposes the decisions of this process to the
// fleet.
func (b *Breakers) agree(ctx context.Context) error {
	for _, p := range b.pages {
		if err := b.agreeOn(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *Breakers) agreeOn(ctx context.Context, p *page) error {
	for range swaps {
		changes := b.changes(p)
		if len(changes) == 0 && !p.lost {
			return nil
		}
		if b.conf.Clock.Now()-b.looked > gap { // probably another process has written the same
			if err := b.pull(ctx); err != nil {
				return err
			}
			continue
		}
		done, err := b.swap(ctx, p, changes)
		if done || err != nil {
			return err
		}
	}
	return nil // the next round continues
}

func (b *Breakers) changes(p *page) (all []change) {
	now := b.conf.Clock.Now()
	for _, t := range b.seats {
		if t.page != p {
			continue
		}
		if c, ok := b.settle(now, t); ok {
			all = append(all, c)
		}
	}
	return all
}

func (b *Breakers) swap(ctx context.Context, p *page, changes []change) (done bool, err error) {
	at := b.conf.Clock.Now() + b.lo
	next, raw, err := p.with(changes, at)
	if err != nil {
		return false, err
	}
	calling, cancel := b.calling(ctx)
	defer cancel()
	b.counts.swaps.Add(1)
	r, ok, err := b.conf.Store.Swap(calling, b.conf.Group, fleet.Record{Name: p.name, Version: p.version, Value: raw, Keep: keep})
	switch {
	case err != nil:
		return false, fmt.Errorf("change breakers: %w", err)
	case !ok:
		b.counts.conflicts.Add(1)
		return false, p.read(r, at)
	}
	p.content, p.version, p.raw, p.lost = next, r.Version, raw, false
	now := b.conf.Clock.Now()
	for i := range changes {
		b.agreed(now, &changes[i])
	}
	return true, nil
}

// agreed applies a change that the store has accepted.
func (b *Breakers) agreed(now time.Duration, c *change) {
	t := c.seat
	if c.adopt {
		b.follow(now, t, &c.entry, c.own)
		return
	}
	t.followed(now, c.own, &c.entry, b)
}
