package dynamostore

import (
	"strconv"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A fixedCell is a quota of calendar windows. Attributes w and e are the begin and the
// end of the window that c counts, y counts the one before. Attribute h counts the units
// of c's window that came back: c and it are one reading, of which neither is known without the other.
//
// Near the turn, as long as the store may still be in the old window, or others may
// say so, what is taken counts in both.
type calendarCell struct {
	*view
	have       bool
	start, end int64
	count      int64
	before     int64 // y
	back0      int64 // h
	turned     bool  // into a window that the item does not know yet
	seen       int64 // so much is known to have gone in the window at least, less what came back since
	seenBack   int64 // when that of it had come back
	outside    bool  // the windows that were named do not hold the present
	both       bool  // it counts in two windows

	returned, owed, taken int64
}

func (c *calendarCell) name(letter string) string { return letter + c.view.at }

func openCalendar(v *view, w *limit.Windows, k *fleet.Claim) cell {
	c := &calendarCell{view: v}
	c.start, c.have = v.item.number(c.name("w"))
	c.end, _ = v.item.number(c.name("e"))
	c.count, _ = v.item.number(c.name("c"))
	c.before, _ = v.item.number(c.name("y"))
	c.back0, _ = v.item.number(c.name("h"))
	c.enter(w)
	c.both = v.now.lo < c.start || v.now.label < c.start
	if k != nil && w.Start.UnixMicro() == c.start {
		c.seen, c.seenBack = min(k.Seen, times(longestDebt, v.rule.Amount)), k.SeenBack
	}
	return c
}

// known is how much is known to have gone in the window at least.
func (c *calendarCell) known() int64 { return c.seen - max(0, c.back0+c.returned-c.seenBack) }

// gone is how much has gone in the window before anything is taken.
func (c *calendarCell) gone() int64 { return max(c.count-c.returned+c.owed, c.known()) }

// raised reports whether more is known to have gone than the item says.
func (c *calendarCell) raised() bool { return c.known() > c.count-c.returned+c.owed }

// enter turns to the window of the present, if it is later than the item's. Windows
// that overlap, because the limit was given others, have what went in both.
func (c *calendarCell) enter(w *limit.Windows) {
	start, end := w.Start.UnixMicro(), w.End.UnixMicro()
	if c.now.label >= end {
		start, end = end, w.Next.UnixMicro()
	}
	c.outside = c.now.label < start || c.now.label >= end
	switch {
	case c.outside:
		return
	case c.have && start < c.start:
		c.end = max(c.end, end)
		return
	case c.have && start == c.start:
		c.end = end
		return
	case !c.have || start > c.end:
		c.before, c.count = 0, 0
	case start == c.end:
		c.before, c.count = c.count, 0
	default:
		c.before = c.count
	}
	c.turned, c.back0 = true, 0
	c.start, c.end = start, end
}

func (c *calendarCell) back(m fleet.Mark, n int64) {
	if c.have && !c.turned && m.At == c.start {
		c.returned += min(n, c.count-c.returned)
	}
}

func (c *calendarCell) owe(n int64) {
	c.owed += min(n, max(0, times(longestDebt, c.rule.Amount)-c.count-c.owed))
}

// left is what can be granted now.
func (c *calendarCell) left() int64 {
	left := c.remains()
	if c.both {
		left = min(left, c.rule.Amount-c.before-c.owed-c.taken-c.ahead)
	}
	return max(0, left)
}

// remains is what the window has left, though near the turn it cannot be granted yet.
func (c *calendarCell) remains() int64 { return max(0, c.rule.Amount-c.gone()-c.taken-c.ahead) }

// told is what a process is told of what remains. If it is told less it takes the rest for gone, and says so in its next ask: what is on
// its way may never arrive.
func (c *calendarCell) told() int64 { return max(0, c.rule.Amount-c.gone()-c.taken) }

func (c *calendarCell) take(n int64) { c.taken += n }

func (c *calendarCell) write(u *update) int64 {
	more := c.owed + c.taken
	switch {
	case more == 0 && c.returned == 0 && !c.raised() || c.outside && !c.have:
		return 0
	case c.turned || c.raised() || !c.have:
		c.turn(u, more)
		return 0
	}
	u.same(c.item, c.name("w"))
	u.addNumber(c.name("c"), strconv.FormatInt(more-c.returned, 10))
	if c.taken > 0 {
		u.needs(c.name("c"), "<=", c.number(u, c.rule.Amount-more+c.returned))
	}
	if c.returned > 0 {
		u.needs(c.name("c"), ">=", c.number(u, c.returned))
	}
	u.addNumber(c.name("h"), strconv.FormatInt(c.returned, 10)) // 0, too: the answer says what had come back when it counted
	if c.both && more > 0 {
		u.addNumber(c.name("y"), strconv.FormatInt(more, 10))
		c.bothBear(u, more)
	}
	return more
}

func (c *calendarCell) number(u *update, n int64) string {
	return u.number(strconv.FormatInt(n, 10))
}

func (c *calendarCell) bothBear(u *update, more int64) {
	if c.taken == 0 {
		return
	}
	if _, ok := c.item[c.name("y")]; !ok {
		u.absent(c.name("y"))
		return
	}
	u.needs(c.name("y"), "<=", c.number(u, c.rule.Amount-more))
}

// turn writes the whole state.
func (c *calendarCell) turn(u *update, more int64) {
	u.strict = true
	for _, letter := range [...]string{"w", "c"} {
		u.same(c.item, c.name(letter))
	}
	before := c.before
	if c.both {
		before += more
	}
	u.setNumber(c.name("w"), strconv.FormatInt(c.start, 10))
	u.setNumber(c.name("e"), strconv.FormatInt(c.end, 10))
	u.setNumber(c.name("c"), strconv.FormatInt(c.gone()+c.taken, 10))
	u.setNumber(c.name("y"), strconv.FormatInt(before, 10))
	if c.turned || !c.have {
		u.setNumber(c.name("h"), strconv.FormatInt(c.returned, 10))
		return
	}
	u.addNumber(c.name("h"), strconv.FormatInt(c.returned, 10))
}

func (c *calendarCell) heard(it item, _ int64) {
	c.count, c.have = it.number(c.name("c"))
	c.before, _ = it.number(c.name("y"))
	c.back0, _ = it.number(c.name("h"))
	c.returned, c.owed, c.taken, c.ahead, c.seen = 0, 0, 0, 0, 0
}

func (c *calendarCell) wait(cost int64) int64 {
	switch {
	case cost > c.rule.Amount:
		return never
	case c.left() >= cost:
		return 0
	case c.both && c.rule.Amount-c.gone()-c.taken >= cost:
		return c.sure(c.start - c.now.lo)
	}
	return c.sure(max(1, c.end-c.now.lo))
}

// turning is how long the turn of windows lasts, if that is all why there is not as much
// as is wanted.
func (c *calendarCell) turning(want int64) int64 {
	if !c.both || c.left() >= want || c.rule.Amount-c.gone()-c.taken-c.ahead < want {
		return 0
	}
	return c.start - c.now.lo
}

func (c *calendarCell) reset() int64 { return max(0, c.end-c.now.label) }

func (c *calendarCell) mark() fleet.Mark { return fleet.Mark{At: c.start} }
