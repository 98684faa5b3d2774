package dynamostore

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A part is the portion of an ask that concerns one item.
type part struct {
	entry  *entry
	limits []*share
	claims int // number of claimed limits
	was    *sent
	void   bool  // some granted units may still be returned later, so the ask gets no grant
	waited bool  // it has waited for a change of windows
	since  int64 // knowledge of the item from before is outdated

	granted int64
	seat    seat   // the seat of the answer
	told    string // the answer as stored in the seat
	undo    bool   // return the grant, down to granted
}

// A share is the portion of an ask that concerns one limit of an item.
type share struct {
	rule    *fleet.Rule
	at      string
	claim   *fleet.Claim
	index   int // of the claim
	settle  []*fleet.Settlement
	windows *limit.Windows

	of *share // the share whose units an undo returns

	extra int64
	grant fleet.Grant
}

// parts divides an ask by items.
func (s *Store) parts(a *fleet.Ask) []*part {
	var all []*part
	of := func(key string) *part {
		n := name("t", a.Group, key)
		for _, p := range all {
			if p.entry.name == n {
				return p
			}
		}
		p := &part{entry: s.entry(n), since: longAgo}
		p.was, p.void = s.recalls(a.ID, n)
		all = append(all, p)
		return p
	}
	for i := range a.Claims {
		k := &a.Claims[i]
		p := of(k.Key)
		p.claims++
		h := p.share(k.Rule)
		h.claim, h.index, h.windows = k, i, &k.Windows
	}
	for i := range a.Settle {
		t := &a.Settle[i]
		h := of(t.Key).share(t.Rule)
		h.settle = append(h.settle, t)
		if h.windows == nil {
			h.windows = &t.Windows
		}
	}
	return all
}

func (p *part) share(r *fleet.Rule) *share {
	for _, h := range p.limits {
		if h.rule.Name == r.Name {
			return h
		}
	}
	h := &share{rule: r, at: suffix(r.Name)}
	p.limits = append(p.limits, h)
	return h
}

// slotted returns the number of limits with slots: rolling limits, and buckets with a history.
func (p *part) slotted() (n int) {
	for _, h := range p.limits {
		if _, kept := p.entry.item["x"+h.at]; kept || h.rule.Shape == limit.Rolling {
			n++
		}
	}
	return n
}

// A plan is the update of an item for its part of an ask.
type plan struct {
	u      update
	now    instant
	sup    *supply
	shares []*live
	copies int64
	told   *answer // the lane's answer, if it has answered this ask already
	whole  bool    // the response must contain the complete item
	seat   seat
	answer answer
	turn   int64 // microseconds until windows have certainly changed, if more would be granted then
	tidy   bool  // the update only frees space for the next plan
}

// A live is a share with its cell.
type live struct {
	*share
	cell   cell
	paused int64 // end of the pause, in microseconds of the store's clock
	taken  int64
	extra  int64
	ahead  int64
	wrote  bool // the update changes the limit
}

// plan plans an update from the copy of an item. The caller holds the entry's mu.
func (s *Store) plan(a *fleet.Ask, p *part, want int64) *plan {
	e := p.entry
	l := &plan{now: s.present(p)}
	l.sup = s.roster(a.Group).supply(l.now)
	e.awake(l.now.epoch)
	l.seat = s.seat(e.item, a.Lane, l.now.label/1e6)
	l.answer = answer{lane: a.Lane, id: a.ID, second: l.now.label / 1e6}
	if l.seat.own && l.seat.last.id == a.ID && !p.undo {
		l.told = &l.seat.last
	}
	if p.undo && e.item[p.seat.name] != p.told {
		l.told = &answer{} // the lane has continued, so its grant stays
	}
	if p.void { // the settlements are still executed
		if want = 0; l.told != nil {
			l.told = &answer{}
		}
	}
	lost := s.reseat(l, p)
	if l.told == nil && l.merge(e, p) {
		return l
	}
	for _, h := range p.limits {
		l.shares = append(l.shares, s.open(l, e, h, lost || l.told != nil, manyFree/max(1, p.slotted()), p.since != longAgo))
	}
	if l.told != nil {
		l.copies = l.told.granted
		return l
	}
	if l.decide(a, want); l.copies < want && l.drop() {
		return l
	}
	l.write(p)
	return l
}

// present returns the instant to plan with. It is not behind the timestamps of other processes in the item.
func (s *Store) present(p *part) instant {
	e, m := p.entry, s.clock.mono()
	for _, h := range p.limits {
		switch h.rule.Shape {
		case limit.Rolling:
			s.raise(e, m, "z"+h.at, e.item["z"+h.at])
			continue
		case limit.Calendar:
			continue
		}
		if f := strings.Split(e.item["b"+h.at], "."); len(f) == 4 {
			s.raise(e, m, "b"+h.at, f[2])
		}
		if said, _, ok := strings.Cut(e.item["j"+h.at], "."); ok {
			s.raise(e, m, "j"+h.at, said)
		}
	}
	return s.clock.read()
}

func (s *Store) raise(e *entry, m int64, name, said string) {
	us, _ := strconv.ParseInt(said, 10, 64)
	if seen, ok := e.seen[name]; ok && seen.value == e.item[name] {
		s.clock.raise(m, us+(m-seen.late)/1000)
	}
}

// reseat selects the seat of an earlier update that may have been executed. It reports true if its fate can no
// longer be determined. Then the plan returns no units.
func (s *Store) reseat(l *plan, p *part) (lost bool) {
	if p.was == nil || l.seat.own {
		return false
	}
	old, ok := p.entry.item[p.was.seat]
	if ok == p.was.free || old != p.was.old {
		return true
	}
	l.seat = seat{name: p.was.seat, old: p.was.old, free: p.was.free}
	return false
}

// open opens the cell of a share and applies its settlements.
func (s *Store) open(l *plan, e *entry, h *share, keep bool, most int, retry bool) *live {
	v := &view{h.rule, h.at, e.item, e.seen, l.now, e.ahead[h.at], max(1, most), l.sup, l.now.rough && !e.used[h.at], retry}
	x := &live{share: h, cell: v.open(h.windows, h.claim)}
	x.paused, _ = e.item.number("p" + h.at)
	x.cell.owe(l.inherit(v))
	for _, t := range h.settle {
		if t.Back > 0 && t.Mark != (fleet.Mark{}) && !keep {
			x.cell.back(t.Mark, t.Back)
		}
		if l.told == nil {
			x.cell.owe(t.Owe)
			x.pause(l, t.Pause)
		}
	}
	l.whole = l.whole || h.rule.Shape == limit.Rolling
	if c, ok := x.cell.(*bucketCell); ok {
		l.whole = l.whole || c.history.kept || c.begins()
	}
	return x
}

// pause extends the pause. A pause is never shortened.
func (x *live) pause(l *plan, d time.Duration) {
	if d <= 0 {
		return
	}
	until := l.now.label + int64((d-1)/time.Microsecond) + 1
	x.paused = max(x.paused, until)
}

// decide determines how many copies all limits allow, and takes them.
func (l *plan) decide(a *fleet.Ask, want int64) {
	l.copies = want
	for _, x := range l.shares {
		switch {
		case x.claim == nil:
		case x.paused > l.now.label:
			l.copies = 0
		case x.claim.Cost > 0:
			l.copies = min(l.copies, x.copies())
			if f, ok := x.cell.(*calendarCell); ok && want > 0 {
				l.turn = max(l.turn, f.turning(times(want, x.claim.Cost)))
			}
		}
	}
	for _, x := range l.shares {
		if x.claim == nil {
			continue
		}
		x.taken = l.copies * x.claim.Cost
		x.cell.take(x.taken)
		if l.copies == a.Copies && x.paused <= l.now.label {
			x.extra = min(x.claim.Extra, x.cell.left()/4)
			x.cell.take(x.extra)
		}
	}
}

// copies returns how many copies of the call its limit allows.
func (x *live) copies() int64 {
	if c, ok := x.cell.(*bucketCell); ok && c.isLarge(x.claim.Cost) && c.wait(x.claim.Cost) == 0 {
		return 1
	}
	return x.cell.left() / x.claim.Cost
}

// write writes the update, which may be empty.
func (l *plan) write(p *part) {
	it := p.entry.item
	for _, x := range l.shares {
		before := l.u.size()
		x.ahead = x.cell.write(&l.u)
		x.wrote = l.u.size() > before
		l.writePause(it, x)
	}
	if l.u.empty() {
		return
	}
	if p.undo {
		l.u.needs(p.seat.name, "=", l.u.text(p.told))
		l.answer.granted = p.granted
		l.u.setText(p.seat.name, l.answer.String())
		return
	}
	l.answer.granted = l.copies
	back := false
	for _, x := range l.shares {
		if x.claim != nil {
			l.answer.extras = append(l.answer.extras, x.extra)
		}
		for _, t := range x.settle {
			back = back || t.Back > 0
		}
	}
	l.seat.write(&l.u, &l.answer, back || l.seat.own && p.entry.seats[l.seat.name] == 0)
	l.writeLife(it)
}

// writePause adds a new pause, or the condition that no pause is in force.
func (l *plan) writePause(it item, x *live) {
	attribute := "p" + x.at
	old, ok := it.number(attribute)
	switch {
	case x.paused > old:
		until := strconv.FormatInt(x.paused, 10)
		if ok {
			l.u.needs(attribute, "<", l.u.number(until))
		} else {
			l.u.absent(attribute)
		}
		l.u.setNumber(attribute, until)
	case x.taken+x.extra == 0 && (x.claim == nil || l.copies == 0):
	case ok:
		l.u.needs(attribute, "<=", l.u.number(strconv.FormatInt(l.now.label, 10)))
	default:
		l.u.absent(attribute)
		l.u.setNumber(attribute, "0") // so that the next condition can compare it, which is cheaper
	}
}

const (
	life      = 7 * 24 * 3600 // seconds after its last use for which an item is kept
	lifeSteps = 12 * 3600     // resolution of the ttl in seconds
)

// writeLife sets when the table may remove the item: not before all limits are full again. The presence of the item
// has no meaning.
func (l *plan) writeLife(it item) {
	until := l.now.label/1e6 + 1 + life
	for _, x := range l.shares {
		reset := min(x.cell.reset(), math.MaxInt64/4)
		until = max(until, (max(l.now.label+reset, x.paused))/1e6+lifeSteps)
	}
	if old, ok := it.number("ttl"); ok && old >= until-lifeSteps {
		return
	}
	l.u.life = true
	l.u.setNumber("#ttl", strconv.FormatInt(until, 10))
}

// finish writes the grants of a part into the ask.
func (l *plan) finish(a *fleet.Ask, p *part, it item, lag int64) {
	p.granted = l.copies
	a.Now = laterOf(a.Now, l.now.time())
	if l.told != nil {
		l.retell()
	}
	for _, x := range l.shares {
		if x.wrote && l.told == nil {
			x.cell.heard(it, lag)
		}
		if x.of != nil && l.told == nil {
			x.of.grant = x.tell(l.now, x.of.claim.Cost)
		}
		if x.claim == nil {
			continue
		}
		x.share.extra = x.extra
		x.share.grant = x.tell(l.now, x.claim.Cost)
		if l.told != nil {
			x.share.grant.Mark = fleet.Mark{}
		}
	}
}

func (l *plan) retell() {
	extras := slices.Clone(l.told.extras)
	for _, x := range l.shares {
		if x.claim != nil && len(extras) > 0 {
			x.extra, extras = extras[0], extras[1:]
		}
	}
}

func (x *live) tell(now instant, cost int64) fleet.Grant {
	g := fleet.Grant{Extra: x.extra, Left: x.cell.left(), Mark: x.cell.mark()}
	switch f := x.cell.(type) {
	case *calendarCell:
		g.Left, g.Back = f.told(), f.back0+f.returned
	case *bucketCell:
		g.Drain = micro(f.drain())
	}
	g.Paused = micro(max(0, x.paused-now.label))
	g.Wait = max(g.Paused, micro(x.cell.wait(cost)))
	g.Reset = micro(x.cell.reset())
	return g
}
