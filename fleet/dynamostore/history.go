package dynamostore

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/fleet"
)

// A history shows the value of returned units that were granted longer ago than a full bucket takes to drain.
// Attribute t alone cannot show it. See fleet.Cell. A bucket needs a history only if calls reserve more than they use
// and report late. So the history begins with the first units that return too late for t, and ends when the bucket
// runs empty.
//
// Attributes d_PLACE are its slots. A slot contains the weight that was granted after the previous slot and up to an
// instant of the bucket's time, and has not been returned. PLACE encodes that instant, the slot's end, and how much of
// the bucket counted as taken then because parts were out. For each slot, t is at least PLACE plus the weight granted in
// this slot and later ones.
// Returned units lower a slot, which all processes may do concurrently. The next call that lacks room lowers t to what
// the slots require, on the condition that t is unchanged. Then the process's copy of the slots contains all grants.
//
// Attribute m is the end of the first slot. This slot includes all earlier grants, and older slots no longer count.
// Units are never added to a slot that ends before m. The condition of a process that has not seen m rise fails, and
// the process asks again. Attribute x is t plus the returned weight g, as the writers of the history count them. If the
// present sum differs, a process of an earlier version has taken units, and the history must begin again.
type history struct {
	slots []past   // the oldest first, less the weight that this update returns
	stale []string // attributes of slots that no longer count
	gone  []string // attributes of slots that end before floor
	since int64    // m
	floor int64    // the next m: the end of the first slot that counts
	newer int64    // no slot ends later
	kept  bool     // the item contains a valid history
	late  bool     // units were returned that are worth more with a history
	lower int64    // by how much t can be lowered to what the slots require
	place int64    // of the slot to which this update adds; 0 for none
}

// A past is a slot of a history.
type past struct {
	place  int64 // the end of the slot, and in the lowest outBits how much counted as taken
	weight int64
	back   int64 // the weight that this update returns
}

// The lowest outBits of a place contain how much of the bucket counted as taken, in units of 1/outShares.
const (
	outBits   = 7
	outShares = 64
)

func (p *past) end() int64 { return p.place >> outBits }

// out returns the weight that counted as taken, rounded up.
func (p *past) out(full int64) int64 {
	n := p.place & (1<<outBits - 1)
	if n == 0 {
		return 0
	}
	return full/outShares*n + outShares
}

const (
	slotsPerFill = 60 // slots in the time in which a full bucket drains
	slotsPerAge  = 72 // the most in the age of a longer history, if all were as long as the present slot
	goneTogether = 4  // this many slots that no longer count are dropped together
)

func (c *bucketCell) slotName(end int64) string {
	return c.name("d") + "_" + strconv.FormatInt(end, 36)
}

// openHistory reads the slots from the item.
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

// weighHistory determines by how much t can be lowered, and drops slots that no longer count: a later slot requires t
// to be at least as high.
func (c *bucketCell) weighHistory() {
	h := &c.history
	if h.lower = 0; !h.kept || !c.axis || len(h.slots) == 0 {
		return
	}
	var total, sum, before int64
	for _, s := range h.slots {
		total += s.weight
	}
	// Slots that end at the same instant count as one. before is the weight of the slots before the first of them.
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

// backLate returns units to the mark's slot.
func (c *bucketCell) backLate(m fleet.Mark, n int64) {
	h := &c.history
	i, ok := slices.BinarySearchFunc(h.slots, m.At, func(s past, at int64) int { return cmp.Compare(s.place, at) })
	if !ok {
		return
	}
	// An expression is limited to 4 KB. When it has no space for another slot, the units return to an earlier slot in
	// it, where they are worth less.
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

// begins reports whether this update begins a history.
func (c *bucketCell) begins() bool {
	return c.history.late && !c.history.kept && c.axis && !c.now.rough && !c.vague() && c.level > c.rule.Meter.Cap/2
}

// slotPlace returns the place of the present slot. This slot never ends before a slot that was used already, because each
// slot also counts the grants of later slots. The length of slots grows with the age of the history, by powers of two,
// so that calls share slots.
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

// lowersHistory lowers t if the taken units do not fit otherwise. It reports whether it does.
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

// writeHistory adds the changes of the slots to an update that adds net and gap to t, and subtracts returned weight.
func (c *bucketCell) writeHistory(u *update, net, gap int64) {
	h, x, m := &c.history, c.name("x"), c.name("m")
	stale := h.stale
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
			if len(h.gone) >= goneTogether { // m never falls: a concurrent update with an earlier floor fails
				most = h.floor
				u.setNumber(m, strconv.FormatInt(most, 10))
				stale = slices.Concat(stale, h.gone)
			}
			u.needs(m, "<=", u.number(strconv.FormatInt(most, 10)))
		}
		if net+gap > 0 {
			u.addNumber(x, strconv.FormatInt(net+gap, 10))
		}
		c.writeSlots(u, net)
	}
	for _, name := range stale[:min(len(stale), c.most/2)] {
		u.drop(name)
	}
}

// writeSlots adds net to the present slot, and subtracts returned weight from the slots that had granted it.
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

// endHistory adds the end of the history to an update.
func (c *bucketCell) endHistory(u *update) {
	for _, letter := range [...]string{"x", "m"} {
		if _, ok := c.item[c.name(letter)]; ok {
			u.drop(c.name(letter))
		}
	}
}

// backs returns the number of slots to which units return.
func (h *history) backs() (n int) {
	for _, s := range h.slots {
		if s.back > 0 {
			n++
		}
	}
	return n
}
