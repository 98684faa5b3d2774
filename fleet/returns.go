package fleet

import (
	"cmp"
	"context"
	"github.com/seed1158cd35/weir/limit"
	"math"
	"slices"
	"time"
)

// What comes back to this process is of use to others only when the store has been told.
// It travels with the next ask. Where somebody is short of it that ask is brought forward;
// where others of the fleet may be, what came back is told within toldWithin, ask or not.
const (
	toldWithin   = 25 * time.Millisecond
	leasedAgain  = 10 * time.Millisecond // between asks for what came back, of a process that leases
	manyPending  = 64                    // settlements of one limit and key that are told without delay
	mostPending  = 256                   // and that are kept apart
	mostSettling = 1024                  // settlements in one call to the store
)

// settle notes something to be told to the store: units that come back, and debts. It travels with the next ask that names
// the lease, or is told by Run. If that fails debts are kept, and what came back is
// lost: the store may have heard of it, and counted twice it would be granted twice.
func (p *lease) settle(now time.Duration, s Settlement) {
	s.Rule, s.Key = &p.spec().rule, p.key
	p.mu.Lock()
	p.settleShare(now, p.spec(), &s)
	if len(p.pending) >= mostPending {
		p.fold()
	}
	p.pending = append(p.pending, s)
	p.came += s.Back
	wake := p.enough()
	told := len(p.pending) >= manyPending || s.Back > 0 && !p.plenty(now)
	p.mu.Unlock()
	p.group.isActive(p)
	for _, q := range wake {
		q.enough.Store(true)
		q.line.Nudge()
	}
	if told {
		p.soon(now)
	}
}

// splinters reports whether no block that is held is large enough for the cost: then the
// store can make one of them all.
func (p *lease) splinters(cost int64) bool {
	for i := range p.blocks {
		if b := p.blocks[i].Load(); b != nil && b.left.Load() >= cost {
			return false
		}
	}
	return true
}

// A shortage is a queue that asks again as soon as came is so large. It ends when that is so, once.
type shortage struct {
	q     *queue
	until int64
}

// enough is the queues for which as much has come back as they were short of. The lock
// is held.
func (p *lease) enough() (all []*queue) {
	p.short = slices.DeleteFunc(p.short, func(s shortage) bool {
		if p.came < s.until {
			return false
		}
		all = append(all, s.q)
		return true
	})
	return all
}

// plenty reports whether the store had half of the limit left a moment ago: then nobody
// is short. The lock is held.
func (p *lease) plenty(now time.Duration) bool {
	return p.seen.known && p.seen.grant.Left > p.spec().most()/2 && now < p.seen.at+time.Second
}

// notShort is where came never gets: the queue of a shortage that stands there is short of nothing that can come back here.
const notShort = math.MaxInt64

// isShort notes that the queue asks again as soon as came is so large, and reports whether
// that is so already.
func (p *lease) isShort(q *queue, until int64) (enough bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = slices.DeleteFunc(p.short, func(s shortage) bool { return s.q == q })
	// As much may have come back between the ask and now.
	if p.came >= until || until == notShort {
		return until != notShort
	}
	p.short = append(p.short, shortage{q, until})
	return false
}

// cameBack is how many units were ever pending to come back.
func (p *lease) cameBack() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came
}

// soon has Run tell what came back.
func (p *lease) soon(now time.Duration) {
	if p.urgent.Swap(true) {
		return
	}
	f := p.group.fleet
	// One of those that come within toldWithin wakes Run; the others are told along with it.
	if f.tell.CompareAndSwap(0, int64(now+toldWithin)) {
		f.waker.Wake()
	}
}

// rest sleeps for d, or until something has to be told.
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

// due is the instant before which the store is not asked for a call that costs so much of the limit that was short last, and
// when there is something again as far as is known. Of calls that cost less than what was refused nothing is known, so they
// do not wait. The lock is held.
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

// spacing is how long at least lies between two asks for what came back.
func (q *queue) spacing() time.Duration {
	for _, p := range q.leases {
		if p.spec().leased {
			return leasedAgain
		}
	}
	return askAgain
}

// missing tells the limits that granted too little how much must come back until it is
// worth to ask again, and reports whether one of them has that already, or holds it in
// blocks that the next ask gives back.
func (q *queue) missing(now time.Duration) (enough bool) {
	for i, p := range q.leases {
		c, g := &q.ask.Claims[i], &q.ask.Grants[i]
		until := int64(notShort)
		if g.Wait > 0 && g.Paused == 0 && c.Cost <= c.Rule.Most() {
			until = q.came[i] + c.Cost - g.Left
			if p.splinters(c.Cost) {
				until -= p.held(now)
			}
		}
		enough = p.isShort(q, until) || enough
	}
	return enough
}

// forget lets go of a queue that is not used any more.
func (q *queue) forget() {
	for _, p := range q.leases {
		p.isShort(q, notShort)
	}
}

// fold makes room among what is pending. Debts become one. Units of one grant come back
// two by two, as if both stood where the lower does: there they may count for less, and
// never for more. If that is not enough the older half is let go.
func (p *lease) fold() {
	sum := Settlement{Rule: &p.spec().rule, Key: p.key}
	var backs []Settlement
	for _, s := range p.pending {
		sum.Owe += s.Owe
		if s.Owe = 0; s.Back > 0 {
			backs = append(backs, s)
		}
	}
	byMark := slices.Clone(backs)
	slices.SortStableFunc(byMark, func(a, b Settlement) int {
		return cmp.Or(cmp.Compare(a.Mark.At, b.Mark.At), cmp.Compare(a.Mark.Step, b.Mark.Step), cmp.Compare(a.Mark.Level, b.Mark.Level))
	})
	kept := p.pending[:0]
	for i := 0; i < len(byMark); i++ {
		s := byMark[i]
		if i+1 < len(byMark) && s.with(byMark[i+1].Mark) {
			s.Back += byMark[i+1].Back
			i++
		}
		kept = append(kept, s)
	}
	if len(kept) > mostPending/2 {
		kept = append(kept[:0], backs[len(backs)-min(len(backs), mostPending/2):]...)
	}
	p.pending = append(kept, sum)
}

// with reports whether units at another mark may come back as if they stood at the
// settlement's, which is the lower one, or of a bucket the earlier one.
func (s *Settlement) with(m Mark) bool {
	switch {
	case s.Rule.Shape == limit.Rolling:
		return s.Mark == m
	case s.Rule.Shape == limit.Bucket && s.Mark.Step == 0:
		return m.Step == 0
	}
	return s.Mark.At == m.At && s.Mark.Step == m.Step
}
