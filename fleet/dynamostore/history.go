package dynamostore

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/fleet"
)

// A history lets units of a bucket come back that were granted longer ago than a full bucket takes to drain: see
// fleet.Cell. Attribute t alone cannot tell what they are worth. A bucket needs a history only if calls reserve more than
// they use and report late, so it begins with the first units that come back too late for t, and ends when the bucket runs
// empty.
//
// Attributes d_PLACE are its slots: the weight that was granted until an instant of the bucket's time, and has not come back.
// PLACE is that instant, and how much of the bucket counted as taken then as parts were out. For each slot t is never lower than
// PLACE and what was granted in the slot and after it. Units that come back lower a slot, which all may do at once. The next
// call that lacks room lowers t to what the slots need, on condition that t is as it was seen: then the slots have been seen,
// too.
//
// Attribute m is the end of the first slot. It stands for all that was granted before, and older slots count no more. Nothing
// is added to a slot that ends before m: a process that has not seen m rise is refused, and asks again. Attribute x is t without what came back, as far as the slots know: another value shows
// that a process of an earlier version has taken something, and the history must begin again.
type history struct {
	slots []past   // the oldest first; as seen, less what comes back with this update
	stale []string // attributes of slots that count no more
	gone  []string // and of those that end before floor
	since int64    // m
	floor int64    // what m becomes: the end of the first slot that counts
	newer int64    // no slot ends later
	kept  bool     // slots are written
	late  bool     // units came back that are worth more with a history
	lower int64    // by how much t can be lowered to what the slots need
	place int64    // of the slot that this update adds to; 0 for none
}

// A past is a slot of a history.
type past struct {
	place  int64 // the end of the slot, and in outBits how much was out
	weight int64
	back   int64 // what comes back
}

// outBits of a place say how much of the bucket counted as taken, as a number of outShares.
const (
	outBits   = 7
	outShares = 64
)

func (p *past) end() int64 { return p.place >> outBits }

// out is the weight that counted as taken.
func (p *past) out(full int64) int64 {
	n := p.place & (1<<outBits - 1)
	if n == 0 {
		return 0
	}
	return full/outShares*n + outShares
}

const (
	slotsPerFill = 60 // slots in the time in which a full bucket drains
	slotsPerAge  = 72 // and at most in the time since a longer history began, if all had the length of the present one
	goneTogether = 4  // so many slots that count no more are dropped at once
)

func (c *bucketCell) slotName(end int64) string {
	return c.name("d") + "_" + strconv.FormatInt(end, 36)
}

// openHistory reads the slots.
func (c *bucketCell) openHistory() {
	c.history = history{late: c.history.late}
	h := &c.history
	x, ok := c.item[c.name("x")]
	h.since, _ = c.item.number(c.name("m"))
	if ok && c.axis {
		total, ok := new(big.Int).SetString(x, 10)
		h.kept = ok && total.Cmp(new(big.Int).Add(c.pos, big.NewInt(c.gone))) == 0
	}
	prefix := c.name("d") + "_"
	for name, value := range c.item {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		s := past{}
		s.place, _ = strconv.ParseInt(rest, 36, 64)
		s.weight, _ = strconv.ParseInt(value, 10, 64)
		h.newer = max(h.newer, s.end())
		if !h.kept || s.end() < h.since {
			h.stale = append(h.stale, name)
			continue
		}
		h.slots = append(h.slots, s)
	}
	slices.SortFunc(h.slots, func(a, b past) int { return cmp.Compare(a.place, b.place) })
	c.weighHistory()
}

// weighHistory finds out by how much t can be lowered, and which slots matter no more: a later one needs t to be as high.
func (c *bucketCell) weighHistory() {
	h := &c.history
	if h.lower = 0; !h.kept || !c.axis || len(h.slots) == 0 {
		return
	}
	var total, sum, before int64
	for _, s := range h.slots {
		total += s.weight
	}
	// Slots that end at one instant are one: before is what stands before the first of them.
	most, first, one := int64(-huge), 0, 0
	for i := range h.slots {
		s := &h.slots[i]
		if s.end() != h.slots[one].end() {
			one, before = i, sum
		}
		if v := total - before + s.out(c.rule.Meter.Cap) + times(s.end()-c.low, c.rule.Meter.Drain); v >= most {
			most, first = v, one
		}
		sum += s.weight
	}
	h.floor = h.slots[first].end()
	for _, s := range h.slots[:first] {
		if s.back == 0 {
			h.gone = append(h.gone, c.slotName(s.place))
		}
	}
	h.slots = h.slots[first:]
	least := max(most, times(c.high-c.low, c.rule.Meter.Drain)+c.floor())
	h.lower = max(0, c.level-c.returned-least)
}

// backLate returns units to the slot that the mark names.
func (c *bucketCell) backLate(m fleet.Mark, n int64) {
	h := &c.history
	i, ok := slices.BinarySearchFunc(h.slots, m.At, func(s past, at int64) int { return cmp.Compare(s.place, at) })
	if !ok {
		return
	}
	// An expression has 4 KB: what comes back to more slots than it can name comes back to earlier ones, where it is worth less.
	for n := h.backs(); h.slots[i].back == 0 && n >= max(1, c.most/3); i-- {
		if i == 0 {
			return
		}
	}
	s := &h.slots[i]
	w := max(0, min(s.weight, times(n, c.rule.Meter.Unit)))
	s.weight -= w
	s.back += w
	c.weighHistory()
}

// begins reports whether a history is to begin.
func (c *bucketCell) begins() bool {
	return c.history.late && !c.history.kept && c.axis && !c.now.rough && !c.vague() && c.level > c.rule.Meter.Cap/2
}

// slotPlace is the place of the present slot, which is never before one that has been used: a slot counts what was granted in later
// slots. Slots are as long as the age of the history demands, by powers of two, so that calls share them.
func (c *bucketCell) slotPlace() int64 {
	m := &c.rule.Meter
	grain := max(1, m.Cap/m.Drain/slotsPerFill)
	for s := c.history.slots; len(s) > 0 && grain < (c.high-s[0].end())/slotsPerAge; {
		grain *= 2
	}
	end := max((c.high/grain+1)*grain, c.at0+1, c.history.since, c.history.newer)
	out := min(outShares, ceilDiv(c.floor(), max(1, m.Cap/outShares)))
	return end<<outBits | out
}

// lowersHistory lets t come down if what is taken needs that, and reports whether it does.
func (c *bucketCell) lowersHistory() bool {
	h := &c.history
	if h.lower == 0 || c.taken == 0 || c.room(false)-h.lower >= c.taken {
		h.lower = 0
		return false
	}
	c.returned += h.lower
	h.lower = 0
	return true
}

// writeHistory adds to an update what becomes of the slots when it adds net to t and what has come back since.
func (c *bucketCell) writeHistory(u *update, net, gap int64) {
	h, x, m := &c.history, c.name("x"), c.name("m")
	switch {
	case c.begins():
		u.strict = true
		u.same(c.item, x)
		u.same(c.item, m)
		end := max(c.high, h.newer, c.at0) + 1
		slot := c.slotName(end << outBits)
		t := new(big.Int).Add(c.pos, big.NewInt(net+gap-c.returned))
		u.setNumber(m, strconv.FormatInt(end, 10))
		u.setNumber(slot, strconv.FormatInt(max(0, between(t, place(end, c.rule.Meter.Drain, 0))), 10))
		u.setNumber(x, t.Add(t, big.NewInt(c.gone+c.returned)).String())
	case !h.kept:
		u.same(c.item, x)
	default:
		if net > 0 {
			h.place = c.slotPlace()
			most := h.place >> outBits
			if len(h.gone) >= goneTogether { // one of the processes that do so at once succeeds
				most = h.floor
				u.setNumber(m, strconv.FormatInt(most, 10))
				h.stale = append(h.stale, h.gone...)
			}
			u.needs(m, "<=", u.number(strconv.FormatInt(most, 10)))
		}
		if net+gap > 0 {
			u.addNumber(x, strconv.FormatInt(net+gap, 10))
		}
		c.writeSlots(u, net)
	}
	for _, name := range h.stale[:min(len(h.stale), c.most/2)] {
		u.drop(name)
	}
}

// writeSlots adds to the present slot, and takes out of others what comes back.
func (c *bucketCell) writeSlots(u *update, net int64) {
	h := &c.history
	for _, s := range h.slots {
		if s.back == 0 {
			continue
		}
		u.needs(c.slotName(s.place), ">=", u.number(strconv.FormatInt(s.back, 10)))
		if s.place == h.place {
			net -= s.back
			continue
		}
		u.addNumber(c.slotName(s.place), strconv.FormatInt(-s.back, 10))
	}
	if h.place != 0 && net != 0 {
		u.addNumber(c.slotName(h.place), strconv.FormatInt(net, 10))
	}
}

// endHistory adds to an update that the history ends.
func (c *bucketCell) endHistory(u *update) {
	for _, letter := range [...]string{"x", "m"} {
		if _, ok := c.item[c.name(letter)]; ok {
			u.drop(c.name(letter))
		}
	}
}

// backs is how many slots get something back.
func (h *history) backs() (n int) {
	for _, s := range h.slots {
		if s.back > 0 {
			n++
		}
	}
	return n
}
