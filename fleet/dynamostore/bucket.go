package dynamostore

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A bucketCell is a token bucket. It stands on an axis that the store's clock runs
// along at Drain places a microsecond; a unit takes up Unit of them. Attribute t is the
// first place that is free (a theoretical arrival time, in the words of GCRA), so that
// taking units adds to it, whoever else does so at the same time, and time empties the
// bucket without a write.
//
// When the bucket runs empty the next process that takes from it sets t anew, ahead of the
// present by as much as the process is unsure of it, and notes in attribute b what it took for
// the present: the base. From there on the bucket's time is the store's time plus an error
// that stays the same until the next base. A process that has seen when the base was
// written knows that time better than the store's, by its own clock.
//
// A process that takes something when there is little left also leaves, in attribute j, the bucket's time as
// far as it was sure of that. Readers then know as much: so all see a unit at about the same instant, and
// none of them always has it first.
//
// Attribute g is the weight that has come back since the base: so much lower stands
// what was taken before. Attribute o is for how long units are held; see hold.
type bucketCell struct {
	*view
	have bool
	base string // as it is in the item
	at0  int64  // the instant in it
	pos  *big.Int
	gone int64 // g

	low, high int64 // bounds of the bucket's time
	ahead0    int64 // by how much the bucket's time is certainly ahead of what is said to be now
	lagged    int64 // by how much low is lower for parts that were out
	level     int64 // places from low to pos, up to Cap and debts; 0 or below if it is empty
	axis      bool  // pos stands on the axis of the rule
	weight    int64 // what is in the bucket if not

	hold                  hold
	returned, owed, taken int64
	fresh                 bool // it is written with a new base
	lag                   int64
	history               history
}

func (c *bucketCell) name(letter string) string { return letter + c.view.at }

func openBucket(v *view) cell {
	c := &bucketCell{view: v, low: v.now.lo, high: v.now.label, axis: true, pos: new(big.Int), hold: v.hold(holdMemory)}
	if m := &v.rule.Meter; times(c.hold.still(), m.Drain) > m.Cap-m.Unit {
		c.hold.becomes(v.rule.Hold) // else there would never be a unit
	}
	c.base, c.have = v.item[c.name("b")]
	if !c.have {
		return c
	}
	var unit, drain, width int64
	_, err := fmt.Sscanf(c.base, "%d.%d.%d.%d", &unit, &drain, &c.at0, &width)
	_, ok := c.pos.SetString(v.item[c.name("t")], 10)
	if err != nil || !ok || unit <= 0 || drain <= 0 {
		c.have = false // nobody writes that; the conditions will tell
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

// bound finds the bucket's time. It may be judged by what is said to be now at most,
// and must be stamped by as much at least, so that what is granted also is within the
// limit by what is said.
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
	if c.now.lo != c.now.hi { // a clock that is known exactly may be another than ours
		c.ahead0 = max(0, c.low-c.now.label)
	}
	c.low, c.high = min(c.low, c.now.label), max(c.high, c.now.label)
	if c.sup == nil || c.sup.lagHigh == 0 {
		return
	}
	// The bucket's time stands still as far as parts are out. What had passed of that when the base was written does not count. A
	// base of an earlier version does not say it.
	least, most := int64(0), c.sup.lagHigh
	if f := strings.Split(c.item[c.name("q")], "."); len(f) == 3 && f[2] == strconv.FormatInt(c.at0, 36) {
		least, _ = strconv.ParseInt(f[0], 36, 64)
		most, _ = strconv.ParseInt(f[1], 36, 64)
	}
	c.lagged = max(0, c.sup.lagHigh-least)
	c.low -= c.lagged
	c.high -= max(0, c.sup.lagLow-most)
}

// floor is the weight that is in the bucket at least, as parts of it are out.
func (c *bucketCell) floor() int64 {
	if c.sup == nil {
		return 0
	}
	return c.sup.Floor(c.rule.Meter.Cap, c.rule.Meter.Drain)
}

// slower is how long it takes for so much of the bucket's time to pass.
func (c *bucketCell) slower(us int64) int64 {
	if c.sup == nil {
		return us
	}
	return c.sup.Slower(us)
}

// place is where an instant is on an axis, and some places on.
func place(us, drain, more int64) *big.Int {
	p := big.NewInt(us)
	p.Mul(p, big.NewInt(drain))
	return p.Add(p, big.NewInt(more))
}

// between is how many places a is ahead of b.
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
	still := m.Level - c.gone - c.returned - ahead // of what was taken up to the mark
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

// inside is the weight in the bucket.
func (c *bucketCell) inside() int64 {
	if !c.axis {
		return max(c.weight, c.floor())
	}
	return max(0, c.level-c.returned-c.history.lower, c.floor())
}

// empty reports whether the bucket has certainly run out.
func (c *bucketCell) empty() bool { return !c.have || c.axis && c.level <= 0 }

// early reports whether the base should be replaced although the bucket is not empty: it was set by a process that did not know
// the time well yet, and is so far ahead of the time that each change wastes units, or too vague for a history. pos stays where it
// is, so that the new base, which is behind the old one, grants no unit that the old one would not. It is tried once for an ask, as
// it fails where others take units meanwhile.
func (c *bucketCell) early() bool {
	if !c.have || !c.axis || c.now.rough || c.retry {
		return false
	}
	return c.gap() > 0 && times(c.ahead0, c.rule.Meter.Drain) > c.rule.Meter.Cap/8 || c.history.late && !c.history.kept && c.vague()
}

// vague reports whether the bucket's time is not known well enough for a history.
func (c *bucketCell) vague() bool {
	m := &c.rule.Meter
	return c.high-c.low > max(m.Cap/m.Drain/32, 100*time.Millisecond.Microseconds())
}

// gap is by how much pos must be put forward so that it is not behind the bucket's
// time, whatever that is, with the floor.
func (c *bucketCell) gap() int64 {
	return max(0, times(c.high-c.low, c.rule.Meter.Drain)+c.floor()-(c.level-c.returned))
}

// counted is how much of a gap counts as weight in the bucket: none for the first call of a process that has just begun to
// learn the time. It may then push the bucket's time forward by up to a second, so that others find the bucket full for so long, but what it
// takes itself fits in.
func (c *bucketCell) counted(gap int64) int64 {
	if c.first {
		return max(0, c.floor()-max(0, c.level-c.returned))
	}
	return gap
}

// room is how much fits in, on a new base or on the one there is.
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

// write starts from a new base if it must, or if the bucket is empty and keeping the
// base would waste much of it. Keeping it is better: then all who write at once may.
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

// lowers is what a shorter hold takes, when something else is written.
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

// ruler is how a base begins that is of the rule's axis.
func (c *bucketCell) ruler() string {
	return fmt.Sprintf("%d.%d.", c.rule.Meter.Unit, c.rule.Meter.Drain)
}

// certainlyEmpty is the condition that nobody has taken anything since. By the
// store's clock alone the base may be another one.
func (c *bucketCell) certainlyEmpty(u *update) {
	t, b, m := c.name("t"), c.name("b"), &c.rule.Meter
	if c.pos.Cmp(place(c.now.lo, m.Drain, 0)) <= 0 && (c.sup == nil || c.sup.lagHigh == 0) {
		u.needs(fmt.Sprintf("begins_with(%s, %s)", b, u.text(c.ruler())))
		u.needs(t, "<=", u.number(place(c.now.lo, m.Drain, 0).String()))
		return
	}
	u.same(c.item, b)
	u.needs(t, "<=", u.number(place(c.low, m.Drain, 0).String()))
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
	if gap > m.Cap/64 { // one such gap is enough: who comes later must see it
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
	if c.level+net > m.Cap/16 { // it matters to processes that do not know the time as well
		u.setText(c.name("j"), strconv.FormatInt(c.low+c.lagged, 10)+"."+strconv.FormatInt(c.at0, 36))
	}
}

func (c *bucketCell) heard(it item, lag int64) {
	if _, ok := c.pos.SetString(it[c.name("t")], 10); !ok {
		c.pos = new(big.Int) // nothing was ever taken
		return
	}
	c.gone, c.returned, c.owed, c.taken, c.ahead = c.gone+c.returned, 0, 0, 0, 0
	if c.now.lo == c.now.hi {
		lag = 0 // time is known exactly
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
	case cost > m.Most():
		return never
	case c.left() >= cost:
		return 0
	}
	if c.sup != nil && cost*m.Unit > m.Cap-c.floor() {
		return c.sure(max(1, c.slower(1e6)))
	}
	over := cost*m.Unit + c.inside() + c.owed + c.taken - m.Cap + min(times(c.hold.beyond(), m.Drain), longestDebt*m.Cap)
	us := c.lag + max(1, ceilDiv(over, m.Drain))
	if slower := c.slower(us); slower > us { // who is out may be heard at any time
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

// drain is for how many microseconds the bucket's weight surely lasts if no part is out: its time may be as late as high.
func (c *bucketCell) drain() int64 {
	if !c.axis {
		return 0
	}
	return max(0, (c.level-c.returned-c.history.lower)/c.rule.Meter.Drain-(c.high-c.low)-c.lag)
}

// mark stands on the base, as if nothing had come back since that.
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
