package dynamostore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A rollingCell is a limit of any window of a length. Attribute r is the number of
// units that count; slots, named by the instant at which they end, have how many went
// in a two-hundredth of the window. Taking units adds to r and to the present slot, which
// all may do at once. When r is used up, or many slots have had their time, the next
// who takes something drops those: a condition says that they are as they were seen.
//
// Attribute z is when the latest of the slots that were dropped had its time, or some time after that. Nobody may take units
// of an earlier present any more: then they would count together. Where there is room, slots stay a little longer than they
// count, so that a process that has just started finds z behind the earliest present that is possible; see lean.
//
// A slot has had its time when the window has passed since its end. A process that
// has seen the slot knows, by its own clock, how long it has not changed, and that is exact
// however unsure the store's time is.
type rollingCell struct {
	*view
	total  int64
	amount int64  // what may count: less than the rule's while parts are out
	slots  []slot // by when they have had their time
	hold   hold
	leans  bool  // see lean
	free   int64 // units in those that have had it, and are dropped
	more   bool  // there are more of them than are dropped at once

	returns               []slot // n of each comes back
	returned, owed, taken int64
	dropped               []slot
}

// A slot is a number of units, less those that came back, and the microseconds until
// it counts no more.
type slot struct {
	name  string
	value string
	n     int64
	end   int64
	in    int64
}

// A slot's number is what went in times 10^13 and what came back, so that it grows with
// every change and no value of it comes twice.
const backDigits = 13

func slotValue(in, back int64) string {
	b := strconv.FormatInt(back, 10)
	if in == 0 {
		return b
	}
	return strconv.FormatInt(in, 10) + strings.Repeat("0", backDigits-len(b)) + b
}

func slotUnits(value string) int64 {
	if len(value) <= backDigits {
		return 0
	}
	in, _ := strconv.ParseInt(value[:len(value)-backDigits], 10, 64)
	back, _ := strconv.ParseInt(value[len(value)-backDigits:], 10, 64)
	return max(0, in-back)
}

// windowOfRule is the window of a rolling limit, and 0 of any other.
func windowOfRule(r *fleet.Rule) int64 {
	if r.Shape != limit.Rolling || r.Tally {
		return 0
	}
	return r.Ring.Window()
}

func (c *rollingCell) name(letter string) string { return letter + c.view.at }

func (c *rollingCell) slotName(end int64) string {
	return c.name("s") + "_" + strconv.FormatInt(end, 36)
}

// manyFree is how many slots of all limits are dropped at once at most, and manyBack how many get
// units back: an expression has 4 KB.
const (
	manyFree = 50
	manyBack = 36
)

// fewFree is how many wait to be dropped until it is done without need.
const fewFree = 32

func openRolling(v *view) cell {
	c := &rollingCell{view: v}
	c.hold = v.hold(2 * bucket.Slots * v.rule.Ring.Grain)
	if c.amount = v.rule.Amount; v.sup != nil {
		c.amount = max(0, c.amount-v.sup.Away(v.rule))
	}
	c.leans = c.canLean()
	c.total, _ = v.item.number(c.name("r"))
	prefix := c.name("s") + "_"
	for name, value := range v.item {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			end, _ := strconv.ParseInt(rest, 36, 64)
			c.slots = append(c.slots, slot{name, value, slotUnits(value), end, c.leaves(name, value, end)})
		}
	}
	slices.SortFunc(c.slots, func(a, b slot) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.name, b.name)) })
	for _, s := range c.slots {
		if s.in > 0 {
			break
		}
		if c.leans && s.end+c.window() > c.now.lo {
			continue
		}
		if c.more = len(c.dropped) >= v.most; c.more {
			break
		}
		c.free += s.n
		c.dropped = append(c.dropped, s)
	}
	return c
}

// window is for how long a slot counts: those of others who hold longer than the asker count longer.
func (c *rollingCell) window() int64 { return bucket.Slots*c.rule.Ring.Grain + c.hold.still() }

// leaves is how many microseconds until a slot counts no more: by what is said to be
// now, and truly.
func (c *rollingCell) leaves(name, value string, end int64) int64 {
	truly := end + c.window() - c.now.lo
	if s, ok := c.seen[name]; ok && s.value == value {
		truly = min(truly, c.window()-c.atLeast(s.late))
	}
	return max(truly, end+c.window()-c.now.label)
}

func (c *rollingCell) back(m fleet.Mark, n int64) {
	name := c.slotName(m.At)
	for _, s := range c.slots {
		if s.name != name || s.in <= 0 || m.Level != 1 {
			continue
		}
		for _, r := range c.returns {
			if r.name == name {
				s.n -= r.n
			}
		}
		if s.n = min(s.n, n); s.n > 0 {
			c.returns = append(c.returns, s)
			c.returned += s.n
		}
	}
}

func (c *rollingCell) owe(n int64) {
	c.owed += min(n, max(0, times(longestDebt, c.rule.Amount)-c.used()))
}

// used is how many units count.
func (c *rollingCell) used() int64 {
	return c.total - c.free - c.returned + c.owed + c.taken
}

func (c *rollingCell) left() int64 {
	if z, _ := c.item.number(c.name("z")); z > c.now.label {
		return 0 // our clock is far behind
	}
	return max(0, c.mayCount()-c.used()-c.ahead)
}

func (c *rollingCell) take(n int64) { c.taken += n }

func (c *rollingCell) write(u *update) int64 {
	more := c.taken + c.owed
	if more == 0 && c.returned == 0 {
		return 0
	}
	c.sparesDropped(more)
	if more > 0 {
		c.hold.write(u)
	}
	c.drop(u)
	c.bear(u, more)
	if net := more - c.returned - c.free; net != 0 {
		u.addNumber(c.name("r"), strconv.FormatInt(net, 10))
	}
	c.note(u, more)
	return more
}

// sparesDropped lets slots that have had their time stay: those that had it lately, if the others make enough room, and all
// of them if they are few and none makes room.
func (c *rollingCell) sparesDropped(more int64) {
	all, keep := c.dropped, time.Duration(0)
	if c.window() >= lingersIn.Microseconds() {
		keep = lifeSlack
	}
	over := c.total + more + c.ahead - c.returned - c.mayCount()
	var old []slot
	var free int64
	for _, s := range all {
		if s.end+c.window() <= c.now.lo-keep.Microseconds() {
			old, free = append(old, s), free+s.n
		}
	}
	switch tight := c.taken > 0 && over > 0; {
	case tight && free < over:
		return
	case !tight && len(old) < min(fewFree, c.view.most):
		old, free = nil, 0
	}
	c.dropped, c.free = old, free
}

// lingersIn is the shortest window whose slots stay longer than they count: of a shorter one it would be many.
const lingersIn = 30 * time.Second

// drop drops the slots that have had their time.
func (c *rollingCell) drop(u *update) {
	z, until := c.name("z"), int64(0)
	for _, s := range c.dropped {
		u.same(c.item, s.name)
		u.drop(s.name)
		until = max(until, s.end+c.window())
	}
	last, ok := c.item.number(z)
	switch {
	case len(c.dropped) > 0:
		u.strict = true
		u.same(c.item, z)
		if until > c.now.lo-lifeSlack.Microseconds() {
			until = c.now.label
		}
		u.setNumber(z, strconv.FormatInt(max(last, until), 10))
	case c.taken == 0:
	case ok:
		most := c.now.label
		if c.lean() > 0 {
			most = c.now.lo
		}
		u.needs(z, "<=", u.number(strconv.FormatInt(most, 10)))
	default:
		u.absent(z)
	}
}

// bear is the condition that everything fits.
func (c *rollingCell) bear(u *update, more int64) {
	r := c.name("r")
	if _, ok := c.item[r]; !ok {
		u.absent(r)
	} else if c.taken > 0 {
		u.needs(r, "<=", u.number(strconv.FormatInt(c.mayCount()-more+c.returned+c.free, 10)))
	}
}

// A process that has just started knows the present only to be from lo to hi, a second later. By hi all members may have
// fallen silent, and what each may then use by itself is its part. But one that was not silent at lo uses for a window and
// fleet.Overlap after it fell silent no more than units that had been granted to it: once when they are reserved, or once they
// have left the window. As long as all units that counted at lo count still, nothing else has to be reserved for it.
//
// By the time such a member uses all of its part the window of what is granted here must have passed. So it counts for nothing
// if it may have been granted later than that; see late.
//
// lean is how many units more can count for that reason.
func (c *rollingCell) lean() int64 {
	if !c.leans {
		return 0
	}
	return max(0, c.sup.Away(c.rule)-c.sup.sure.Away(c.rule))
}

// canLean reports whether no slot was dropped that counted at lo.
func (c *rollingCell) canLean() bool {
	if c.sup == nil || c.sup.sure == nil {
		return false
	}
	z, _ := c.item.number(c.name("z"))
	return z <= c.now.lo
}

// mayCount is how many units may count.
func (c *rollingCell) mayCount() int64 { return min(c.rule.Amount, c.amount+c.lean()) }

// leans reports whether a plan grants something that it could not without lean.
func (l *plan) leans() bool {
	return slices.ContainsFunc(l.shares, func(x *live) bool {
		c, ok := x.cell.(*rollingCell)
		return ok && x.taken+x.extra > 0 && c.lean() > 0
	})
}

// late reports whether a plan that leans may have been executed when what it leans on was so no more.
func (l *plan) late(now instant) bool {
	since := time.Duration(now.mono-l.now.mono) + micro(l.now.hi-l.now.lo)
	return now.epoch != l.now.epoch || since > fleet.Overlap-100*time.Millisecond
}

// note adds to the slots.
func (c *rollingCell) note(u *update, more int64) {
	grain := c.rule.Ring.Grain
	present := c.slotName((c.now.label/grain + 1) * grain)
	backs := make(map[string]int64)
	for _, s := range c.returns {
		if backs[s.name] == 0 {
			u.needs(s.name, ">=", u.number(s.value))
		}
		backs[s.name] += s.n
	}
	for name, n := range backs {
		if name != present || more == 0 {
			u.addNumber(name, slotValue(0, n))
		}
	}
	if more > 0 {
		u.addNumber(present, slotValue(more, backs[present]))
	}
}

func (c *rollingCell) heard(it item, lag int64) {
	next := openRolling(&view{c.rule, c.at, it, c.seen, c.now, 0, c.most, c.sup, false, false}).(*rollingCell)
	*c = *next
}

func (c *rollingCell) wait(cost int64) int64 {
	switch {
	case cost > c.rule.Amount:
		return never
	case c.left() >= cost:
		return 0
	}
	need := cost + c.used() + c.free - c.mayCount()
	for _, s := range c.slots {
		if need -= s.n; need <= 0 {
			return c.sure(max(1, s.in))
		}
	}
	if c.mayCount() < c.rule.Amount { // what is out may come back at any time
		return c.sure(time.Second.Microseconds())
	}
	return c.sure(c.window())
}

func (c *rollingCell) reset() int64 {
	if c.taken+c.owed > 0 {
		return c.sure(c.window() + c.rule.Ring.Grain)
	}
	for _, s := range slices.Backward(c.slots) {
		if s.n > 0 {
			return c.sure(max(0, s.in))
		}
	}
	return 0
}

func (c *rollingCell) mark() fleet.Mark {
	grain := c.rule.Ring.Grain
	return fleet.Mark{At: (c.now.label/grain + 1) * grain, Level: 1}
}
