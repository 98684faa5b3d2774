package pauses

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/pause"
)

// round reads the store if it is time to, and writes local changes.
func (p *Pauses) round(ctx context.Context) error {
	p.wake.Lock()
	p.wake.up = false
	p.wake.Unlock()
	if p.soon.Swap(false) || p.fails > 0 || p.conf.Clock.Now() >= p.pullAt {
		if err := p.pull(ctx); err != nil {
			return err
		}
	}
	return p.agree(ctx)
}

// pull reads the store.
func (p *Pauses) pull(ctx context.Context) error {
	before := p.conf.Clock.Now()
	calling, cancel := p.conf.Clock.WithTimeout(ctx, p.conf.Timeout, errSlow)
	defer cancel()
	all, present, err := p.conf.Store.Load(calling, p.conf.Group, []string{name})
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("the store answered with %d records", len(all))
	}
	if err != nil {
		return fmt.Errorf("read pauses: %w", err)
	}
	after := p.conf.Clock.Now()
	// The store read its clock between before and after.
	at := time.Duration(present.UnixMicro()) * time.Microsecond
	p.lo, p.hi = at-after, at+time.Microsecond-before
	p.looked.Store(int64(after))
	p.pullAt = after + poll/2 + p.upTo(poll)
	p.conf.Book.Set(after, int64(p.lo/time.Microsecond))
	p.read(all[0])
	return nil
}

// read takes over a record of the store.
func (p *Pauses) read(r fleet.Record) {
	if r.Version == p.version && r.Version != 0 {
		return
	}
	now := p.conf.Clock.Now()
	p.same = false
	said, damaged, err := decode(r.Value, now+p.lo, p.conf.Longest)
	if damaged > 0 && r.Version != p.bad {
		p.bad = r.Version
		if p.conf.Damaged != nil {
			p.conf.Damaged(err)
		}
	}
	p.page, p.version = said, r.Version
	p.hear(now)
}

// hear gives the store's entries to the book, in instants of this process.
func (p *Pauses) hear(now time.Duration) {
	said := make(pause.Set, len(p.page))
	for of, e := range p.page {
		for i := range e.Spans {
			if s := &e.Spans[i]; s.Until > 0 {
				s.Until, s.Slack = s.Until-p.lo, p.hi-p.lo
			}
		}
		said[of] = e
	}
	paused, lifted := p.conf.Book.Hear(now, said)
	if p.conf.Heard != nil && len(paused)+len(lifted) > 0 {
		p.conf.Heard(now, paused, lifted)
	}
}

// agree writes the entries that the store does not have, and repeats this after conflicts.
func (p *Pauses) agree(ctx context.Context) error {
	for range swaps {
		if p.same && p.told == p.conf.Book.Changes() {
			return nil
		}
		now := p.conf.Clock.Now()
		if now-time.Duration(p.looked.Load()) > gap { // another process may have written the same
			if err := p.pull(ctx); err != nil {
				return err
			}
			now = p.conf.Clock.Now()
		}
		known, changes := p.conf.Book.Known(now)
		p.page.Settle(now+p.lo, oldest(now+p.lo))
		next, raw, err := encode(p.merged(now, known))
		if err != nil {
			return fmt.Errorf("write pauses: %w", err)
		}
		if maps.Equal(next, p.page) {
			p.same, p.told = true, changes
			return nil
		}
		if err := p.swap(ctx, next, raw); err != nil {
			return err
		}
	}
	p.pullAt = p.conf.Clock.Now() + gap + p.upTo(gap) // the next round continues
	return nil
}

// merged returns the store's entries merged with the known ones, as they are written to the store.
func (p *Pauses) merged(now time.Duration, known pause.Set) pause.Set {
	next := maps.Clone(p.page)
	for of, e := range known {
		old := next[of]
		for i := range e.Spans {
			s := &e.Spans[i]
			switch {
			case s.Until == 0:
			case s.Same(&old.Spans[i]), s.Until <= now+gap: // or it ends before another process can read it
				*s = pause.Span{}
			default:
				*s = p.outward(*s)
			}
		}
		old.Merge(&e)
		next[of] = old
	}
	next.Settle(now+p.lo, oldest(now+p.lo))
	return next
}

// outward converts a pause to the store's clock. It ends when the store's clock shows for certain that the pause is
// over. A pause given in this process keeps its own end, even if a pause from the store ends later by this
// process's clock.
func (p *Pauses) outward(s pause.Span) pause.Span {
	if s.Fresh {
		s.Until = s.Sure()
	}
	s.Until, s.Slack, s.Fresh = (s.Until + p.hi + time.Microsecond - 1).Truncate(time.Microsecond), 0, false
	return s
}

func (p *Pauses) swap(ctx context.Context, next pause.Set, raw []byte) error {
	calling, cancel := p.conf.Clock.WithTimeout(ctx, p.conf.Timeout, errSlow)
	defer cancel()
	r, ok, err := p.conf.Store.Swap(calling, p.conf.Group, fleet.Record{Name: name, Version: p.version, Value: raw, Keep: keep})
	switch {
	case err != nil:
		return fmt.Errorf("write pauses: %w", err)
	case !ok:
		p.read(r)
	default:
		p.page, p.version = next, r.Version
		p.hear(p.conf.Clock.Now()) // others have nothing to add to a pause that ends at the same time by the store's clock
	}
	return nil
}
