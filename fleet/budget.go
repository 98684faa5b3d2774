package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// heldFor is how long the hold of a call counts as held in the store. After that, it counts as spent, unless the call
// has ended. So the holds of a process that died are spent at the latest after this time.
const heldFor = 10 * time.Minute

// heldRule returns the tally of the units of a budget that are granted and not spent yet; nil for other limits. The
// budget itself counts them as used.
func heldRule(l *limit.Limit) *Rule {
	if !l.IsBudget() {
		return nil
	}
	w := bucket.Window{Amount: min(8*l.Amount, 1<<49), Per: heldFor} // never reached
	return &Rule{Name: l.Name + " held", Shape: limit.Rolling, Amount: w.Amount, Ring: bucket.RingOf(w), Tally: true}
}

// holds is what calls in flight hold of a budget. It is guarded by lease.mu.
type holds struct {
	open []hold       // of this process, the oldest first
	back []Settlement // of calls that have ended, for the next request
	all  int64        // held by all processes, by the latest response and the calls of this process that ended since
	at   time.Duration
}

// A hold is units that the store counts as held.
type hold struct {
	units int64
	mark  Mark
	since time.Duration
}

// claimsHolds adds the tallies of budgets to a request, after the claims of the leases.
func (q *queue) claimsHolds() {
	q.tally = q.tally[:0]
	for i, p := range q.leases {
		if r, c := p.spec().held, q.ask.Claims[i]; r != nil {
			q.ask.Claims = append(q.ask.Claims, Claim{Rule: r, Key: p.key, Cost: c.Cost, Extra: c.Extra})
			q.tally = append(q.tally, i)
		}
	}
}

// noteHolds records what the response contains about tallies of budgets.
func (q *queue) noteHolds(now time.Duration) {
	for k, i := range q.tally {
		p, c, g := q.leases[i], &q.ask.Claims[len(q.leases)+k], &q.ask.Grants[len(q.leases)+k]
		p.noteHold(now, c.Rule.Amount-g.Left, q.ask.Granted*c.Cost+g.Extra, g.Mark)
		p.unhold(now, g.Extra-q.ask.Grants[i].Extra) // the tally grants more
	}
}

// noteHold records n units that the tally counts for this process, and what it counts for all.
func (p *lease) noteHold(now time.Duration, all, n int64, m Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds.all, p.holds.at = all, now
	if n > 0 && m != (Mark{}) {
		p.holds.open = append(p.holds.open, hold{n, m, now})
	}
}

// Held returns how many units calls in flight of all processes hold, with the units that other processes keep for an
// outage, by the latest response of the store. Look counts the units that this process keeps as left.
func (p *lease) Held(now time.Duration) int64 {
	own := p.held(now) + p.spareable(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if now > p.holds.at+heldFor {
		return 0
	}
	return max(0, p.holds.all-own)
}

// Spent reports that a call has spent n units of a turn. Units that return to the budget are not spent.
func (p *lease) Spent(now time.Duration, t limit.Turn, n int64) {
	if !isOwn(t) {
		p.unhold(now, min(n, t.Cost))
	}
}

// unhold returns n units to the tally, because they are spent or return to the budget. Units have no owner, so it
// returns the oldest ones, which would leave the tally first.
func (p *lease) unhold(now time.Duration, n int64) {
	if n <= 0 || p.spec().held == nil {
		return
	}
	p.mu.Lock()
	h := &p.holds
	h.all = max(0, h.all-n)
	for n > 0 && len(h.open) > 0 {
		first := &h.open[0]
		if gone := now > first.since+heldFor; !gone {
			some := min(n, first.units)
			h.back = append(h.back, Settlement{Back: some, Mark: first.mark})
			first.units, n = first.units-some, n-some
		} else {
			first.units = 0
		}
		if first.units == 0 {
			h.open = h.open[1:]
		}
	}
	told := !p.plenty(now)
	p.mu.Unlock()
	p.group.isActive(p)
	if told {
		p.soon(now)
	}
}

// takeHolds moves the ended holds into a request. p.mu is held.
func (p *lease) takeHolds(s *spec, to []Settlement) []Settlement {
	for _, b := range p.holds.back {
		if b.Rule, b.Key = s.held, p.key; b.Rule != nil {
			to = append(to, b)
		}
	}
	p.holds.back = p.holds.back[:0]
	return to
}
