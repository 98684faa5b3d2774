package breakers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A batch is failures on their way to the store.
type batch struct {
	fleet.Ask
	seats []*seat
	gens  []int64 // of the seats
	since time.Duration
}

const (
	mostAtOnce = 16 // keys in one ask

	// tooOld is how long failures are kept that the store could not be told of.
	// There they count from when it hears of them, so old ones would count too
	// long; and after a minute it may have forgotten that it has heard.
	tooOld = 15 * time.Second
)

// push tells the store of failures, each once however often a call is repeated.
func (b *Breakers) push(ctx context.Context) error {
	for {
		now := b.conf.Clock.Now()
		if b.pending != nil && now-b.pending.since > tooOld {
			b.pending = nil
		}
		if b.pending == nil {
			b.pending = b.gather(now)
		}
		if b.pending == nil {
			return nil
		}
		if err := b.count(ctx, b.pending); err != nil {
			b.pending.Again = true
			return err
		}
		b.heard(b.pending)
		b.pending = nil
	}
}

func (b *Breakers) count(ctx context.Context, p *batch) error {
	calling, cancel := b.calling(ctx)
	defer cancel()
	b.counts.takes.Add(1)
	if err := b.conf.Store.Take(calling, &p.Ask); err != nil {
		return fmt.Errorf("count failures: %w", err)
	}
	return nil
}

// gather makes a batch of what the seats have.
func (b *Breakers) gather(now time.Duration) *batch {
	p := &batch{Ask: fleet.Ask{Group: b.conf.Group, ID: b.random(), Lane: b.lane}, since: now}
	for _, t := range b.seats {
		if t.failed == 0 {
			continue
		}
		c := t.b.Config()
		e := t.page.of(t.name, now+b.lo)
		if c.Failures > 0 && now-t.since <= tooOld && e.Phase == breaker.Closed && !e.Held {
			p.add(t, &c)
		}
		t.failed = 0
		if len(p.seats) == mostAtOnce {
			break
		}
	}
	if len(p.seats) == 0 {
		return nil
	}
	return p
}

func (p *batch) add(t *seat, c *breaker.Config) {
	r, key := rule(c), t.counter()
	p.Settle = append(p.Settle, fleet.Settlement{Rule: r, Key: key, Owe: t.failed})
	p.Claims = append(p.Claims, fleet.Claim{Rule: r, Key: key, Cost: 1})
	p.seats, p.gens, p.since = append(p.seats, t), append(p.gens, t.gen), min(p.since, t.since)
}

// rule counts failures as the store counts a rolling limit.
func rule(c *breaker.Config) *fleet.Rule {
	n := int64(c.Failures)
	return &fleet.Rule{
		Name: "breaker", Shape: limit.Rolling, Amount: n, Tally: true,
		Ring: bucket.RingOf(bucket.Window{Amount: n, Per: c.Window}),
	}
}

// counter is where the failures of a generation are counted: those from before the
// breaker was open last count no more.
func (t *seat) counter() string {
	return strings.Join([]string{t.name, strconv.FormatInt(t.gen, 36)}, "@")
}

// heard notes whose failures are too many. Those of an older generation are none
// of this one's business.
func (b *Breakers) heard(p *batch) {
	for i, t := range p.seats {
		if i < len(p.Grants) && p.Grants[i].Left == 0 && p.gens[i] == t.gen {
			t.full = true
		}
	}
}
