package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A reserve is units of a rolling limit that the store has charged to this process and that the process has not
// used. The process uses them in an outage before its earlier grants begin to leave the store's window. A
// process that is younger than the window has no other units.
//
// The limit stays exact, since the store counts each reserved unit as a used one. When an outage begins, the
// used and reserved units of all processes are within the limit. From then on, each process uses no more than
// its reserve and the used units that leave the window. During the outage, reserved units that leave the
// store's window count like used units that leave it. All usage without the store stays below the part, which
// the store has kept free by the time the reserved units have left its window. Units used from the reserve are
// debts like all usage without the store.
//
// It is guarded by Group.own.
type reserve struct {
	blocks []reserved // the oldest first
	spent  int64      // units spent from the blocks in the use with the key
	key    int        // of a use; 0 while the store is asked
	gen    int64      // the generation of the store's memory that charged them; another one does not know them
}

// A reserved is units with one mark. The store counts them at least until low.
type reserved struct {
	units int64
	mark  Mark
	low   time.Duration
}

// shortestReserved is the shortest window for which a reserve is kept. A shorter window passes before an outage
// is noticed.
const shortestReserved = 10 * time.Second

// mostReserved is the largest number of blocks of a reserve.
const mostReserved = 32

// charged returns the units that the store still counts at an instant.
func (r *reserve) charged(at time.Duration) (n int64) {
	for _, b := range r.blocks {
		if b.low > at {
			n += b.units
		}
	}
	return n
}

// returnable returns the units that the store takes back, which need a mark.
func (r *reserve) returnable() (n int64) {
	for _, b := range r.blocks {
		if b.mark != (Mark{}) {
			n += b.units
		}
	}
	return n
}

// take removes up to n units from the oldest block, and returns their number and mark.
func (r *reserve) take(n int64) (units int64, mark Mark) {
	if len(r.blocks) == 0 || n <= 0 {
		return 0, Mark{}
	}
	b := &r.blocks[0]
	units, mark = min(n, b.units), b.mark
	if b.units -= units; b.units == 0 {
		r.blocks = r.blocks[1:]
	}
	return units, mark
}

// turnReserve brings the reserve to the instant. own is held.
func (p *lease) turnReserve(now time.Duration, u ownUse) *reserve {
	r := &p.own.reserve
	if gen := p.group.standing.gen; r.gen != gen {
		*r = reserve{key: u.key, gen: gen}
	}
	if r.key != u.key { // a new use: the spent units are debts, and no unit can be used twice
		for r.spent > 0 {
			n, _ := r.take(r.spent)
			if n == 0 {
				break
			}
			r.spent -= n
		}
		r.spent, r.key = 0, u.key
	}
	if u.key == 0 {
		for len(r.blocks) > 0 && r.blocks[0].low <= now {
			r.blocks = r.blocks[1:]
		}
	}
	return r
}

// roomReserved returns how many units of the reserve may be spent in the first window of a use. own is held.
func (p *lease) roomReserved(now time.Duration, u ownUse) int64 {
	r := p.turnReserve(now, u)
	return max(0, r.charged(u.began)-r.spent)
}

// wantsReserve returns how many units to add to the reserve; negative means too many. The target is the units
// that the process will probably use in an outage of standbyFor, minus its granted units that leave the window
// by then, and at least one. It is at most half of the process's part of the remaining units. So the death of a
// process wastes no more than that, and calls find the rest. asks is how many units the process is about to
// request.
func (p *lease) wantsReserve(now time.Duration, s *spec, asks int64) int64 {
	seen, begins := p.sight(), p.beginning()
	p.group.own.Lock()
	defer p.group.own.Unlock()
	g := p.group
	u := g.standing.use(now)
	p.turnOwn(now, s, u)
	r := p.turnReserve(now, u)
	if u.mode != asking || u.key != 0 {
		return 0
	}
	have := r.charged(now)
	had := &p.own.had
	had.drop(now - time.Second)
	if begins || seen.grant.Cold || g.standing.part == 0 {
		return -have
	}
	least, _ := s.stay()
	if least < shortestReserved {
		return -have
	}
	n := had.sum + asks
	if len(had.all) > 0 { // the usage in a window, at the rate since the first use
		span := g.fleet.standbyFor()
		age := min(least, max(now-(had.all[0].low-least), min(least/12, span)))
		n = max(min(n, 1), int64(math.Ceil(float64(n)*float64(min(least-age, span))/float64(age))))
	}
	left := s.rule.Amount
	if seen.known {
		left = seen.grant.Left + have
	}
	n = min(n, (partDown(left, g.standing.part)+1)/2)
	if n > have && (n-have)*4 < have { // prefer a few large blocks to many small ones
		return 0
	}
	return n - have
}

// keepReserve adds units that the store has charged. Their request was sent at sent.
func (p *lease) keepReserve(sent, now time.Duration, s *spec, n int64, m Mark) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	u := p.group.standing.use(now)
	p.turnOwn(now, s, u)
	r := p.turnReserve(now, u)
	least, _ := s.stay()
	last := len(r.blocks) - 1
	switch {
	case u.key != 0: // a use has begun meanwhile: the units count as used
	case last >= 0 && r.blocks[last].mark == m:
		r.blocks[last].units += n
		r.blocks[last].low = min(r.blocks[last].low, sent+least)
	case last+1 == mostReserved: // they leave the window with time
	default:
		r.blocks = append(r.blocks, reserved{n, m, sent + least})
		p.group.isActive(p)
	}
}

// releaseReserve returns the settlement of a block of unneeded units. If all is set, all units are unneeded.
func (p *lease) releaseReserve(now time.Duration, s *spec, all bool) (Settlement, bool) {
	over, have := -p.wantsReserve(now, s, 0), p.reserves(now)
	if all {
		over = have
	} else if over*4 <= have {
		return Settlement{}, false
	}
	return p.takeReserved(now, over)
}

// takeReserved removes up to n units of a block from the reserve, unless it is in use, and returns their
// settlement.
func (p *lease) takeReserved(now time.Duration, n int64) (Settlement, bool) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	u := p.group.standing.use(now)
	r := p.turnReserve(now, u)
	if u.key != 0 || r.charged(now) == 0 {
		return Settlement{}, false
	}
	for {
		n, mark := r.take(n)
		if n == 0 || mark != (Mark{}) { // units from a repeat cannot be returned; they leave the window with time
			return Settlement{Back: n, Mark: mark}, n > 0
		}
	}
}

// reserves returns how many units are reserved.
func (p *lease) reserves(now time.Duration) int64 {
	if p.spec().rule.Shape != limit.Rolling {
		return 0
	}
	p.group.own.Lock()
	defer p.group.own.Unlock()
	return p.own.reserve.charged(now)
}
