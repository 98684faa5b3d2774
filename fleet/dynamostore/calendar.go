package dynamostore

import (
	"strconv"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A calendarCell is a quota of calendar windows. Attributes w and e are the beginning and the end of the window
// that c counts. y counts the previous window. h counts the units of c's window that were returned. c and h are one
// reading and must come from the same response.
//
// Near a change of windows, the store or another process may still be in the old window. During that time, units
// taken count in both windows.
type calendarCell struct {
	*view
	have       bool
	start, end int64
	count      int64
	before     int64 // y
	back0      int64 // h
	turned     bool  // into a window that the item does not have yet
	seen       int64 // the usage that a process knows: at least this much is spent, minus later returns
	seenBack   int64 // h when the process saw that usage
	outside    bool  // the present is outside the windows in the ask
	both       bool  // units count in two windows

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

// known returns the usage that a process knows, minus the units returned since.
func (c *calendarCell) known() int64 { return c.seen - max(0, c.back0+c.returned-c.seenBack) }

// gone returns the usage of the window before the ask takes units.
func (c *calendarCell) gone() int64 { return max(c.count-c.returned+c.owed, c.known()) }

// raised reports whether the known usage exceeds the item's.
func (c *calendarCell) raised() bool { return c.known() > c.count-c.returned+c.owed }

// enter changes to the window of the present if it is later than the item's. A window that overlaps the previous
// one, after a change of the limit, starts with the complete usage of the previous one.
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

// left returns the units that can be granted now.
func (c *calendarCell) left() int64 {
	left := c.remains()
	if c.both {
		left = min(left, c.rule.Amount-c.before-c.owed-c.taken-c.ahead)
	}
	return max(0, left)
}

// remains returns the units left in the window. Near a change of windows, some cannot be granted yet.
func (c *calendarCell) remains() int64 { return max(0, c.rule.Amount-c.gone()-c.taken-c.ahead) }

// told returns the remaining units to report to the process, including units of updates in progress. If it were
// lower, the process would count the rest as spent in its next ask, although these updates may never arrive.
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
	u.addNumber(c.name("h"), strconv.FormatInt(c.returned, 10)) // even if 0, so that the response contains h with c
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

// turn writes the complete state.
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

// turning returns how long the change of windows lasts, in microseconds. It returns 0 if the change is not the only
// reason why fewer than want units are available.
func (c *calendarCell) turning(want int64) int64 {
	if !c.both || c.left() >= want || c.rule.Amount-c.gone()-c.taken-c.ahead < want {
		return 0
	}
	return c.start - c.now.lo
}

func (c *calendarCell) reset() int64 { return max(0, c.end-c.now.label) }

func (c *calendarCell) mark() fleet.Mark { return fleet.Mark{At: c.start} }
