package dynamostore

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A bucketCell is a token bucket. Its axis consists of places. The store's clock passes Drain places per microsecond,
// and a unit occupies Unit places. Attribute t is the first free place, which GCRA calls the theoretical arrival time.
// Processes take units by adding to t, also concurrently. The bucket drains with time, without a write.
//
// When the bucket is empty, the next process that takes units sets t again. It starts from the upper bound of the
// present, and writes that bound as the base in attribute b. From then on, the bucket's time is the store's time plus
// an error that is constant until the next base. A process that has seen the base being written measures the bucket's
// time with its own clock. It knows this time better than the store's.
//
// A process that takes units of a bucket that is more than 1/16 full also writes a lower bound of the bucket's time, as
// attribute j. Readers then have the same bound. So all processes see a new unit at about the same instant, and no
// process always gets it first.
//
// Attribute g is the weight that was returned since the base. Earlier grants are now that much lower on the axis.
// Attribute o is the longest time for which units are held: see hold.
type bucketCell struct {
	*view
	have bool
	base string // attribute b
	at0  int64  // the base's instant
	pos  *big.Int
	gone int64 // attribute g

	low, high int64 // bounds of the bucket's time
	ahead0    int64 // how far the bucket's time is ahead of the label, at least
	lagged    int64 // by how much low is lower because parts were out
	level     int64 // places from low to pos, at most Cap and debts; 0 or less if the bucket is empty
	axis      bool  // pos is on the axis of the rule
	weight    int64 // the weight in the bucket if axis is false

	hold                  hold
	returned, owed, taken int64
	fresh                 bool // the update writes a new base
	lag                   int64
	history               history
}

func (c *bucketCell) name(letter string) string { return letter + c.view.at }

func openBucket(v *view) cell {
	c := &bucketCell{view: v, low: v.now.lo, high: v.now.label, axis: true, pos: new(big.Int), hold: v.hold(holdMemory)}
	if m := &v.rule.Meter; times(c.hold.still(), m.Drain) > m.Cap-m.Unit {
		c.hold.becomes(v.rule.Hold) // otherwise no unit would ever be available
	}
	c.base, c.have = v.item[c.name("b")]
	if !c.have {
		return c
	}
	var unit, drain, width int64
	_, err := fmt.Sscanf(c.base, "%d.%d.%d.%d", &unit, &drain, &c.at0, &width)
	_, ok := c.pos.SetString(v.item[c.name("t")], 10)
	if err != nil || !ok || unit <= 0 || drain <= 0 {
		c.have = false // no process writes that, so the update's conditions fail
		return c
	}
	c.gone, _ = v.item.number(c.name("g"))
	c.bound(width)
	c.level = between(c.pos, place(c.low, drain, 0))
	if m := &v.rule.Meter; unit != m.Unit || drain != m.Drain {
		c.axis, c.weight = false, m.Convert(max(0, c.level), unit)
	}
	c.openHistory()
	return c
}

// bound sets the bounds of the bucket's time. low is at most the label, and high is at least the label. So grants are
// within the limit by the label, too.
func (c *bucketCell) bound(width int64) {
	c.low, c.high = c.now.lo, c.now.hi+width
	if s, ok := c.seen[c.name("b")]; ok && s.value == c.base {
		c.low = max(c.low, c.at0+c.atLeast(s.late))
		c.high = min(c.high, c.at0+c.atMost(s.early))
	}
	if s, ok := c.seen[c.name("j")]; ok {
		if at, base, _ := strings.Cut(s.value, "."); base == strconv.FormatInt(c.at0, 36) {
			j, _ := strconv.ParseInt(at, 10, 64)
			c.low = max(c.low, j+c.atLeast(s.late))
		}
	}
	if c.now.lo != c.now.hi { // an exact clock may differ from the process's clock
		c.ahead0 = max(0, c.low-c.now.label)
	}
	c.low, c.high = min(c.low, c.now.label), max(c.high, c.now.label)
	if c.sup == nil || c.sup.lagHigh == 0 {
		return
	}
	// The bucket's time lags behind while parts are out. The lag when the base was written, attribute q, does not
	// count. Earlier versions do not write q.
	least, most := int64(0), c.sup.lagHigh
	if f := strings.Split(c.item[c.name("q")], "."); len(f) == 3 && f[2] == strconv.FormatInt(c.at0, 36) {
		least, _ = strconv.ParseInt(f[0], 36, 64)
		most, _ = strconv.ParseInt(f[1], 36, 64)
	}
	c.lagged = max(0, c.sup.lagHigh-least)
	c.low -= c.lagged
	c.high -= max(0, c.sup.lagLow-most)
}

// floor returns the least weight of the bucket while parts are out.
func (c *bucketCell) floor() int64 {
	if c.sup == nil {
		return 0
	}
	return c.sup.Floor(c.rule.Meter.Cap, c.rule.Meter.Drain)
}

// slower returns how many microseconds it takes until us microseconds of the bucket's time have passed.
func (c *bucketCell) slower(us int64) int64 {
	if c.sup == nil {
		return us
	}
	return c.sup.Slower(us)
}

// place returns the place of an instant in microseconds, plus more places.
func place(us, drain, more int64) *big.Int {
	p := big.NewInt(us)
	p.Mul(p, big.NewInt(drain))
	return p.Add(p, big.NewInt(more))
}

// between returns how many places a is ahead of b.
func between(a, b *big.Int) int64 {
	d := new(big.Int).Sub(a, b)
	if d.IsInt64() {
		return min(max(d.Int64(), -huge), huge)
	}
	return int64(d.Sign()) * huge
}

func (c *bucketCell) back(m fleet.Mark, n int64) {
	if !c.have || !c.axis || m.Step != c.rule.Meter.Unit {
		return
	}
	if m.At != c.at0 {
		c.backLate(m, n)
		return
	}
	ahead := times(c.high-c.at0, c.rule.Meter.Drain)
	still := m.Level - c.gone - c.returned - ahead // the rest of the weight up to the mark
	still = min(still, c.level-times(c.high-c.low, c.rule.Meter.Drain)-c.returned)
	all := times(n, c.rule.Meter.Unit)
	c.history.late = c.history.late || still < all
	if still > 0 {
		c.returned += min(still, all)
		c.weighHistory()
	}
}

func (c *bucketCell) owe(n int64) {
	m := &c.rule.Meter
	if room := longestDebt*m.Cap - c.inside() - c.owed; room > 0 {
		c.owed += min(room, min(n, room/m.Unit+1)*m.Unit)
	}
}

// inside returns the weight in the bucket.
func (c *bucketCell) inside() int64 {
	if !c.axis {
		return max(c.weight, c.floor())
	}
	return max(0, c.level-c.returned-c.history.lower, c.floor())
}

// empty reports whether the bucket is certainly empty.
func (c *bucketCell) empty() bool { return !c.have || c.axis && c.level <= 0 }

// isLarge reports whether a cost is more than a full bucket has. See fleet.Rule.Most.
func (c *bucketCell) isLarge(cost int64) bool { return cost > c.rule.Meter.Most() }

// rested returns for how many places the bucket has certainly been empty, of which only a large call can make use.
func (c *bucketCell) rested() int64 {
	switch {
	case !c.axis, c.floor()+c.owed+c.taken+c.ahead+c.returned > 0:
		return 0
	case !c.have:
		return huge
	}
	return max(0, -c.level)
}

// early reports whether the base should be replaced although the bucket is not empty. Such a base was written by a
// process that did not know the time well yet. It is so far ahead of the time that each change wastes units, or too
// vague for a history. pos is not changed. So the new base, which is behind the old one, grants no unit that the old
// one would not. An ask tries this once, because the update fails if other processes take units concurrently.
func (c *bucketCell) early() bool {
	if !c.have || !c.axis || c.now.rough || c.retry {
		return false
	}
	return c.gap() > 0 && times(c.ahead0, c.rule.Meter.Drain) > c.rule.Meter.Cap/8 || c.history.late && !c.history.kept && c.vague()
}

// vague reports whether the bounds of the bucket's time are too wide for a history.
func (c *bucketCell) vague() bool {
	m := &c.rule.Meter
	return c.high-c.low > max(m.Cap/m.Drain/32, 100*time.Millisecond.Microseconds())
}

// gap returns how far pos, less the returned weight, must move forward to be at least at high plus the floor.
func (c *bucketCell) gap() int64 {
	return max(0, times(c.high-c.low, c.rule.Meter.Drain)+c.floor()-(c.level-c.returned))
}

// counted returns how much of a gap counts as weight in the bucket. For the first call of a process that does not know
// the time well yet, only the missing floor counts. Such a call may move the bucket's time forward by up to a second,
// and other processes find the bucket full for that time. But the units of the call fit.
func (c *bucketCell) counted(gap int64) int64 {
	if c.first {
		return max(0, c.floor()-max(0, c.level-c.returned))
	}
	return gap
}

// room returns the weight that fits, with a new base or with the present one.
func (c *bucketCell) room(fresh bool) int64 {
	m := &c.rule.Meter
	room := m.Cap - min(times(c.hold.beyond(), m.Drain), longestDebt*m.Cap)
	if fresh {
		return room - c.inside() - c.owed
	}
	return room - (c.level - c.returned - c.history.lower) - c.owed - c.ahead - c.counted(c.gap())
}

func (c *bucketCell) left() int64 {
	room := c.room(c.empty() || !c.axis || c.early())
	return max(0, room-c.taken) / c.rule.Meter.Unit
}

func (c *bucketCell) take(n int64) { c.taken += n * c.rule.Meter.Unit }

// write starts from a new base if it must, or if the bucket is empty and the present base would waste a large part. The
// present base is better, because then concurrent updates do not conflict.
func (c *bucketCell) write(u *update) int64 {
	net := c.taken + c.owed
	switch {
	case net == 0 && c.returned == 0 && c.axis && !c.begins() && c.history.backs() == 0:
		return 0
	case !c.axis, !c.have, c.early(), c.empty() && (c.gap() > c.rule.Meter.Cap/8 || c.room(false) < c.taken):
		c.rebase(u, net)
		return 0
	}
	c.more(u, net)
	return net + c.lowers(net)
}

// lowers returns the weight that a shorter hold takes. It is written only together with other changes.
func (c *bucketCell) lowers(net int64) int64 {
	if net == 0 {
		return 0
	}
	m := &c.rule.Meter
	return min(times(c.hold.less(), m.Drain), longestDebt*m.Cap)
}

func (c *bucketCell) rebase(u *update, net int64) {
	m, t, b := &c.rule.Meter, c.name("t"), c.name("b")
	c.fresh, u.strict = true, true
	switch {
	case !c.have:
		u.absent(t)
	case !c.axis, !c.empty():
		u.same(c.item, b)
		u.same(c.item, c.name("x"))
		u.needs(t, "=", u.number(c.item[t]))
	default:
		c.certainlyEmpty(u)
	}
	if _, ok := c.item[c.name("g")]; ok || c.have {
		u.drop(c.name("g"))
	}
	base := fmt.Sprintf("%s%d.%d", c.ruler(), c.now.label, c.now.label-c.now.lo)
	u.setText(b, base)
	u.setNumber(t, place(c.now.label, m.Drain, c.inside()+net+c.lowers(net)).String())
	if q := c.name("q"); c.sup != nil {
		u.setText(q, strconv.FormatInt(c.sup.lagLow, 36)+"."+strconv.FormatInt(c.sup.lagHigh, 36)+"."+strconv.FormatInt(c.now.label, 36))
	} else if _, ok := c.item[q]; ok {
		u.drop(q)
	}
	c.hold.write(u)
	c.endHistory(u)
}

// ruler returns the prefix of bases that are on the rule's axis.
func (c *bucketCell) ruler() string {
	return fmt.Sprintf("%d.%d.", c.rule.Meter.Unit, c.rule.Meter.Drain)
}

// certainlyEmpty adds the condition that the bucket is still empty. If the bucket is empty by the store's clock alone,
// the base may have changed.
func (c *bucketCell) certainlyEmpty(u *update) {
	t, b, m := c.name("t"), c.name("b"), &c.rule.Meter
	rested := min(0, m.Cap-min(times(c.hold.beyond(), m.Drain), m.Cap)-c.taken) // negative for a large call
	if c.pos.Cmp(place(c.now.lo, m.Drain, rested)) <= 0 && (c.sup == nil || c.sup.lagHigh == 0) {
		u.needs(fmt.Sprintf("begins_with(%s, %s)", b, u.text(c.ruler())))
		u.needs(t, "<=", u.number(place(c.now.lo, m.Drain, rested).String()))
		return
	}
	u.same(c.item, b)
	u.needs(t, "<=", u.number(place(c.low, m.Drain, rested).String()))
}

func (c *bucketCell) more(u *update, net int64) {
	m, t := &c.rule.Meter, c.name("t")
	exact := c.lowersHistory()
	gap := c.gap()
	least := place(c.high, m.Drain, c.returned)
	if gap > 0 {
		least = c.pos
	}
	if net > 0 {
		c.hold.write(u)
	}
	weight := net + c.lowers(net)
	net = weight + gap - c.returned
	u.same(c.item, c.name("b"))
	most := place(c.low, m.Drain, m.Cap-times(c.hold.still(), m.Drain)-(net-gap)-c.counted(gap))
	bound := c.taken > 0
	if gap > m.Cap/64 { // one such gap is enough: a later update must see it
		u.strict = true
		if moved := new(big.Int).Add(c.pos, big.NewInt(gap-1)); !bound || moved.Cmp(most) < 0 {
			bound, most = true, moved
		}
	}
	if exact || c.begins() {
		u.strict = true
		u.needs(t, "=", u.number(c.item[t]))
	} else {
		u.needs(t, ">=", u.number(least.String()))
		if bound {
			u.needs(t, "<=", u.number(most.String()))
		}
	}
	if c.returned > 0 || c.begins() {
		u.same(c.item, c.name("g"))
	}
	if c.returned > 0 {
		u.addNumber(c.name("g"), strconv.FormatInt(c.returned, 10))
	}
	c.writeHistory(u, weight, gap)
	if net != 0 {
		u.addNumber(t, strconv.FormatInt(net, 10))
	}
	if c.level+net > m.Cap/16 { // processes that know the time less well need it
		u.setText(c.name("j"), strconv.FormatInt(c.low+c.lagged, 10)+"."+strconv.FormatInt(c.at0, 36))
	}
}

func (c *bucketCell) heard(it item, lag int64) {
	if _, ok := c.pos.SetString(it[c.name("t")], 10); !ok {
		c.pos = new(big.Int) // no unit was ever taken
		return
	}
	c.gone, c.returned, c.owed, c.taken, c.ahead = c.gone+c.returned, 0, 0, 0, 0
	if c.now.lo == c.now.hi {
		lag = 0 // the time is known exactly
	}
	if c.fresh {
		c.low, c.high, c.at0, c.gone, c.lag, c.ahead0 = c.now.label, c.now.label, c.now.label, 0, lag, 0
	}
	c.have, c.axis, c.hold.longest = true, true, c.hold.next
	c.level = between(c.pos, place(c.low, c.rule.Meter.Drain, 0))
	place := c.history.place
	c.item, c.history.late = it, false
	c.openHistory()
	c.history.place = place
}

func (c *bucketCell) wait(cost int64) int64 {
	m := &c.rule.Meter
	switch {
	case cost > c.rule.Most():
		return never
	case c.left() >= cost:
		return 0
	}
	if floor := c.floor(); floor > 0 && cost*m.Unit > m.Cap-floor {
		return c.sure(max(1, c.slower(1e6)))
	}
	over := cost*m.Unit + c.inside() + c.owed + c.taken - m.Cap + min(times(c.hold.beyond(), m.Drain), longestDebt*m.Cap)
	if c.isLarge(cost) {
		if over -= min(over, c.rested()); over == 0 {
			return 0
		}
	}
	us := c.lag + max(1, ceilDiv(over, m.Drain))
	if slower := c.slower(us); slower > us { // a member that is out may send a beat at any time
		us = max(us, min(slower, time.Second.Microseconds()))
	}
	return c.sure(us)
}

func (c *bucketCell) reset() int64 {
	w := c.inside() + c.owed + c.taken
	if w <= 0 {
		return 0
	}
	return c.sure(c.lag + c.slower(ceilDiv(w, c.rule.Meter.Drain)))
}

// drain returns for how many microseconds the bucket certainly has weight if no part is out. Its time may be as late as
// high.
func (c *bucketCell) drain() int64 {
	if !c.axis {
		return 0
	}
	return max(0, (c.level-c.returned-c.history.lower)/c.rule.Meter.Drain-(c.high-c.low)-c.lag)
}

// mark returns the mark of the last unit. Its Level counts from the base and includes the weight returned since. With a
// history, At is the place of the slot, and otherwise the base's instant.
func (c *bucketCell) mark() fleet.Mark {
	if !c.have {
		return fleet.Mark{}
	}
	level := between(c.pos, place(c.at0, c.rule.Meter.Drain, 0)) + c.gone
	if level >= huge {
		return fleet.Mark{}
	}
	at := c.at0
	if c.history.place != 0 {
		at = c.history.place
	}
	return fleet.Mark{At: at, Level: level, Step: c.rule.Meter.Unit}
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
