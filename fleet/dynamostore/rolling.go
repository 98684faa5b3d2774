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

// A rollingCell is a limit that holds in every window of a length. Attribute r is the number of units that count.
// Slots contain the units taken in a two-hundredth of the window each, and are named by their end. A take adds to r
// and to the present slot, which all processes may do concurrently. When r is exhausted, or many slots have
// expired, the next take drops expired slots, on the condition that they are unchanged.
//
// Attribute z is when the latest of the dropped slots expired, or slightly later. No process may take units at an
// earlier present, because the old and new units would then count in one window. Where space allows, slots stay a
// little longer than they count. Then z is behind the earliest possible present of a process that has just started:
// see lean.
//
// A slot expires when the window has passed since its end. A process that has seen the slot knows by its own clock
// how long it has been unchanged. This is exact even if the store's time is uncertain.
type rollingCell struct {
	*view
	total  int64
	amount int64  // units that may count: fewer than the rule's while parts are out
	slots  []slot // ordered by expiry
	hold   hold
	leans  bool  // see lean
	free   int64 // units in dropped slots
	more   bool  // more slots have expired than one update drops

	returns               []slot // n of each is returned
	returned, owed, taken int64
	dropped               []slot
}

// A slot is a number of units without returned ones, and the microseconds until it expires.
type slot struct {
	name  string
	value string
	n     int64
	end   int64
	in    int64
}

// The value of a slot is the units taken times 10^13 plus the units returned. It grows with every change, so no
// value repeats.
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

// windowOfRule returns the window of a rolling limit, and 0 for other limits.
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

// An expression has at most 4 KB. manyFree is the most slots of all limits that one update drops, and manyBack the
// most that get units back.
const (
	manyFree = 50
	manyBack = 36
)

// fewFree is how many expired slots accumulate before they are dropped without need.
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

// window returns how long a slot counts. It is longer if other processes hold their grants longer than this one.
func (c *rollingCell) window() int64 { return bucket.Slots*c.rule.Ring.Grain + c.hold.still() }

// leaves returns the microseconds until a slot expires, both by the label and by the true time.
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

// used returns the units that count.
func (c *rollingCell) used() int64 {
	return c.total - c.free - c.returned + c.owed + c.taken
}

func (c *rollingCell) left() int64 {
	if z, _ := c.item.number(c.name("z")); z > c.now.label {
		return 0 // the process's clock is far behind
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

// sparesDropped keeps some expired slots. It keeps slots that expired recently if the others free enough units. It
// keeps all if they are few and the units are not needed.
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

// lingersIn is the shortest window whose slots stay longer than they count. A shorter window would have many such
// slots.
const lingersIn = 30 * time.Second

// drop drops expired slots.
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

// bear adds the condition that the units fit.
func (c *rollingCell) bear(u *update, more int64) {
	r := c.name("r")
	if _, ok := c.item[r]; !ok {
		u.absent(r)
	} else if c.taken > 0 {
		u.needs(r, "<=", u.number(strconv.FormatInt(c.mayCount()-more+c.returned+c.free, 10)))
	}
}

// A process that has just started knows the present only between lo and hi, a second apart. By hi, all members may
// be silent, and each may then use its part. For a window plus fleet.Overlap after it became silent, a member that
// was not silent at lo uses only units that were granted to it, or that have left the window. So while all units
// that counted at lo still count, nothing else must be reserved for it.
//
// When such a member uses its complete part, the window of the units granted here must have passed. So a grant is
// void if it may have been made later than that: see late.
//
// lean returns how many more units can count for this reason.
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

// mayCount returns how many units may count.
func (c *rollingCell) mayCount() int64 { return min(c.rule.Amount, c.amount+c.lean()) }

// leans reports whether a plan grants units that it could not grant without lean.
func (l *plan) leans() bool {
	return slices.ContainsFunc(l.shares, func(x *live) bool {
		c, ok := x.cell.(*rollingCell)
		return ok && x.taken+x.extra > 0 && c.lean() > 0
	})
}

// late reports whether a plan that leans may have been executed after its reason had expired.
func (l *plan) late(now instant) bool {
	since := time.Duration(now.mono-l.now.mono) + micro(l.now.hi-l.now.lo)
	return now.epoch != l.now.epoch || since > fleet.Overlap-100*time.Millisecond
}

// note adds the units to the slots.
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
	if c.mayCount() < c.rule.Amount { // units of parts that are out may return at any time
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
