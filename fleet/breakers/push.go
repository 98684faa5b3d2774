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

// A batch is failures that are being sent to the store.
type batch struct {
	fleet.Ask
	seats []*seat
	gens  []int64 // generations of the seats
	since time.Duration
}

const (
	mostAtOnce = 16 // keys in one ask

	// tooOld is how long failures wait while the store is unreachable. The store counts failures from the time of
	// the ask, so old failures would count too long. After a minute, the store may also have forgotten that it has
	// counted them.
	tooOld = 15 * time.Second
)

// push sends failures to the store. The store counts each failure once, even if the call is repeated.
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

// gather returns a batch of the seats' failures.
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

// rule returns the rule by which the store counts failures: a tally with a rolling window.
func rule(c *breaker.Config) *fleet.Rule {
	n := int64(c.Failures)
	return &fleet.Rule{
		Name: "breaker", Shape: limit.Rolling, Amount: n, Tally: true,
		Ring: bucket.RingOf(bucket.Window{Amount: n, Per: c.Window}),
	}
}

// counter returns the key of a generation's failures. Failures from before the breaker last opened do not count.
func (t *seat) counter() string {
	return strings.Join([]string{t.name, strconv.FormatInt(t.gen, 36)}, "@")
}

// heard marks the seats whose failures have reached the maximum. It ignores counts of an older generation.
func (b *Breakers) heard(p *batch) {
	for i, t := range p.seats {
		if i < len(p.Grants) && p.Grants[i].Left == 0 && p.gens[i] == t.gen {
			t.full = true
		}
	}
}
