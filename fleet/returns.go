package fleet

import (
	"cmp"
	"context"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"math"
	"slices"
	"time"
)

// Returned units are useful to other processes only after they were reported to the store. The next request
// reports them. If a call of this process needs them, that request is sent earlier. If other processes may need
// them, they are reported within toldWithin.
const (
	toldWithin   = 25 * time.Millisecond
	leasedAgain  = 10 * time.Millisecond // between requests for returned units, by a process that leases
	manyPending  = 64                    // with this many settlements, a lease is reported without delay
	mostPending  = 256                   // with this many, settlements are merged
	mostSettling = 1024                  // settlements in one request
)

// settle adds a settlement to the pending ones: returned units or debts. The next request for the lease reports
// it, or Run does. If that gets no response, the request is repeated with the same ID; see unsettled.
func (p *lease) settle(now time.Duration, s Settlement) {
	s.Rule, s.Key = &p.spec().rule, p.key
	p.mu.Lock()
	p.settleShare(now, p.spec(), &s)
	if len(p.pending) >= mostPending {
		p.fold()
	}
	p.pending = append(p.pending, s)
	p.back.all += s.Back
	wake := p.enough()
	told := len(p.pending) >= manyPending || s.Back > 0 && !p.plenty(now)
	p.mu.Unlock()
	p.group.isActive(p)
	p.unhold(now, s.Back)
	for _, q := range wake {
		q.enough.Store(true)
		q.line.Nudge()
	}
	if told {
		p.soon(now)
	}
}

// splinters reports whether no block is large enough for the cost. Then the store can combine all blocks.
func (p *lease) splinters(cost int64) bool {
	for i := range p.blocks {
		if b := p.blocks[i].Load(); b != nil && b.left.Load() >= cost {
			return false
		}
	}
	return true
}

// A shortage is a queue that asks again when returned.all reaches until. It ends then.
type shortage struct {
	q     *queue
	until int64
}

// enough returns the queues whose missing units have returned. p.mu is held.
func (p *lease) enough() (all []*queue) {
	p.short = slices.DeleteFunc(p.short, func(s shortage) bool {
		if p.back.all < s.until {
			return false
		}
		all = append(all, s.q)
		return true
	})
	return all
}

// plenty reports whether the store recently had more than half of the limit, so that no process lacks units.
// p.mu is held.
func (p *lease) plenty(now time.Duration) bool {
	return p.seen.known && p.seen.grant.Left > p.spec().burst()/2 && now < p.seen.at+time.Second
}

// notShort is a value that is never reached: the queue lacks no units that can return here.
const notShort = math.MaxInt64

// isShort records that the queue asks again when that many units have returned, and reports whether it already has.
func (p *lease) isShort(q *queue, until int64) (enough bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = slices.DeleteFunc(p.short, func(s shortage) bool { return s.q == q })
	// As many units may have returned since the request.
	if p.back.all >= until || until == notShort {
		return until != notShort
	}
	p.short = append(p.short, shortage{q, until})
	return false
}

// soon makes Run report returned units soon.
func (p *lease) soon(now time.Duration) {
	if p.urgent.Swap(true) {
		return
	}
	f := p.group.fleet
	// The first return wakes Run. Run reports later ones within toldWithin together with it.
	if f.tell.CompareAndSwap(0, int64(now+toldWithin)) {
		f.waker.Wake()
	}
}

// rest sleeps for d, or until reports are due.
func (f *Fleet) rest(ctx context.Context, d time.Duration) error {
	if f.Away() {
		return f.clock.Sleep(ctx, d)
	}
	if f.tell.Load() == 0 {
		if err := f.waker.Sleep(ctx, d); err != nil {
			return err
		}
	}
	if at := time.Duration(f.tell.Load()); at != 0 {
		return f.clock.Sleep(ctx, min(d, at-f.clock.Now()))
	}
	return nil
}

// due returns the instant before which no request is sent for a call with the cost of the limit that was short
// last. It also returns when units should be available. A call that costs less than the refused cost does not
// wait, since its wait is unknown. mu is held.
func (q *queue) due(cost int64) (next, there time.Duration) {
	if cost < q.dear {
		return 0, q.there
	}
	if q.enough.Load() {
		next = min(q.next, q.asked+q.spacing())
		return next, next
	}
	return q.next, max(q.next, q.there)
}

// spacing returns the least time between two requests for returned units.
func (q *queue) spacing() time.Duration {
	for _, p := range q.leases {
		if p.spec().leased {
			return leasedAgain
		}
	}
	return askAgain
}

// returning makes the queue ask again immediately if calls would be refused, and each limit that lacked units may
// have enough now: other requests of this process were returning units when the store decided, or returned enough
// since. It reports false if the last request was such a repeat.
func (q *queue) returning(now time.Duration) bool {
	if q.repeats = !q.repeats && q.wouldRefuse(now); !q.repeats {
		return false
	}
	for i, p := range q.leases {
		g, cost := &q.ask.Grants[i], q.ask.Claims[i].Cost
		if g.Left >= cost {
			continue
		}
		p.mu.Lock()
		late := q.back[i].sent > 0 && q.back[i].sent+now-q.first.at > q.first.at // by the duration of this request
		enough := p.back.all-q.back[i].all >= cost-g.Left
		p.mu.Unlock()
		if q.repeats = g.Paused == 0 && cost <= q.ask.Claims[i].Rule.Most() && (late || enough); !q.repeats {
			return false
		}
	}
	q.mu.Lock()
	q.next = now
	q.mu.Unlock()
	return true
}

// wouldRefuse reports whether a call cannot wait as long as the limits require.
func (q *queue) wouldRefuse(now time.Duration) (would bool) {
	wait := time.Duration(1)
	for i := range q.leases {
		wait = max(wait, q.ask.Grants[i].Wait)
	}
	q.line.Each(func(a line.Asker) line.Kind {
		would = would || a.(*waiter).until < later(now, wait)
		return line.Wait
	})
	return would
}

// missing tells each limit that granted too few units how many must return before the next request. It reports
// whether that many have already returned to a limit, or are held in blocks that the next request returns.
func (q *queue) missing(now time.Duration) (enough bool) {
	for i, p := range q.leases {
		c, g := &q.ask.Claims[i], &q.ask.Grants[i]
		until := int64(notShort)
		if g.Wait > 0 && g.Paused == 0 && c.Cost <= c.Rule.Most() {
			until = q.back[i].all + c.Cost - g.Left
			if p.splinters(c.Cost) {
				until -= p.held(now)
			}
		}
		enough = p.isShort(q, until) || enough
	}
	return enough
}

// forget removes the queue from its leases' shortages.
func (q *queue) forget() {
	for _, p := range q.leases {
		p.isShort(q, notShort)
	}
}

// fold merges pending settlements. Debts become one. Units of one grant return together, and nothing is lost. If
// too many settlements remain, units of other grants return in pairs, at the lower mark of the two. There they may
// count for less, and never for more. If they cannot, those of the earliest grants are dropped.
func (p *lease) fold() {
	sum := Settlement{Rule: &p.spec().rule, Key: p.key}
	var backs []Settlement
	for _, s := range p.pending {
		sum.Owe += s.Owe
		if s.Owe = 0; s.Back > 0 {
			backs = append(backs, s)
		}
	}
	slices.SortStableFunc(backs, func(a, b Settlement) int {
		return cmp.Or(cmp.Compare(a.Mark.At, b.Mark.At), cmp.Compare(a.Mark.Step, b.Mark.Step), cmp.Compare(a.Mark.Level, b.Mark.Level))
	})
	backs = merged(backs, len(backs), func(s *Settlement, m Mark) bool { return s.Mark.At == m.At && s.with(m) })
	for n := 0; len(backs) > mostPending/2 && len(backs) != n; {
		n = len(backs)
		backs = merged(backs, 2, (*Settlement).with)
	}
	p.pending = append(append(p.pending[:0], backs[max(0, len(backs)-mostPending/2):]...), sum)
}

// merged adds each settlement to the one before it if with allows it. Up to most settlements become one.
func merged(all []Settlement, most int, with func(*Settlement, Mark) bool) []Settlement {
	kept, n := all[:0], 0
	for _, s := range all {
		if last := len(kept) - 1; last >= 0 && n < most && with(&kept[last], s.Mark) {
			kept[last].Back += s.Back
			n++
			continue
		}
		kept, n = append(kept, s), 1
	}
	return kept
}

// with reports whether units with the mark m may return with the settlement's mark, which is the lower one, or
// for a bucket the earlier one.
func (s *Settlement) with(m Mark) bool {
	switch {
	case s.Rule.Shape == limit.Rolling:
		return s.Mark == m
	case s.Rule.Shape == limit.Bucket && s.Mark.Step == 0:
		return m.Step == 0
	}
	return s.Mark.At == m.At && s.Mark.Step == m.Step
}
