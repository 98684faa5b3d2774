package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A yearbook records operations on a calendar limit, and the units used in each window by the wall clock.
type yearbook struct {
	rng     *rand.Rand
	l       Limit
	m       *Limiter
	w       *wall
	now     time.Duration
	paused  time.Duration
	page    int64               // of the window
	most    int64               // the largest amount since the window began
	used    map[time.Time]int64 // by the beginning of the window
	waiting []*holder
	went    []*holder
	windows map[*holder]time.Time // in which they were used
}

// changes are days on which clocks change, or days that begin at an odd time.
var changes = []struct{ zone, at string }{
	{"America/Los_Angeles", "2026-03-08T00:00:00-08:00"}, {"America/Los_Angeles", "2026-11-01T00:00:00-07:00"},
	{"Africa/Cairo", "2026-04-24T00:00:00+02:00"}, {"Africa/Cairo", "2026-10-29T22:00:00+03:00"},
	{"Asia/Beirut", "2026-03-29T00:00:00+02:00"}, {"America/Havana", "2026-03-08T00:00:00-05:00"},
	{"America/Havana", "2026-11-01T00:00:00-04:00"}, {"America/Santiago", "2026-09-06T00:00:00-04:00"},
	{"Australia/Lord_Howe", "2026-04-05T01:00:00+11:00"}, {"Asia/Kathmandu", "2025-12-31T20:00:00+05:45"},
	{"", "2024-02-28T23:00:00Z"}, {"Pacific/Apia", "2011-12-29T12:00:00-10:00"}, {"Europe/Berlin", "2026-12-31T12:00:00+01:00"},
}

func newYearbook(rng *rand.Rand) (*yearbook, error) {
	place := changes[rng.IntN(len(changes))]
	begin, _ := time.Parse(time.RFC3339, place.at)
	l := fixedLimit(1+rng.Int64N(20), bucket.Second+bucket.Period(rng.IntN(int(bucket.Month))), place.zone)
	h := &yearbook{
		rng: rng, l: l, now: time.Duration(rng.Int64N(1 << 59)), most: l.Amount,
		used: make(map[time.Time]int64), windows: make(map[*holder]time.Time),
	}
	lead := upTo(rng, int64(3*l.Every.Usual()))
	h.w = &wall{Clock: clock.System, begin: begin.Add(-h.now - time.Duration(lead))}
	r, err := NewRegistry(h.now, l, WithWall(h.w))
	if err != nil {
		return nil, err
	}
	h.m = r.Get(h.now, "")
	return h, nil
}

func (h *yearbook) window() (start, end time.Time) {
	return h.l.calendar().Window(h.w.Wall(h.now))
}

func (h *yearbook) use(u *holder) error {
	start, _ := h.window()
	if h.now < h.paused {
		return fmt.Errorf("went at %v, in a pause until %v", h.now, h.paused)
	}
	h.turn()
	if h.used[start] += u.n; h.used[start] > h.most {
		return fmt.Errorf("%d of %d in the window that begins at %v", h.used[start], h.most, start)
	}
	h.went = append(h.went, u)
	h.windows[u] = start
	return nil
}

// advance lets waiting calls proceed in order. The first one asks at the predicted instant, or when it happens to
// ask.
func (h *yearbook) advance(to time.Duration) error {
	for len(h.waiting) > 0 && h.waiting[0].told <= to {
		u := h.waiting[0]
		if at := max(h.now, u.told); at > h.now {
			if h.m.Ask(h.now, u.n) == at-h.now { // nothing has happened since
				if _, _, ok := h.m.Take(at-1, u.n); ok {
					return fmt.Errorf("a turn has come before %v, as was said", at)
				}
			}
			h.now = at
		}
		if err := h.come(u); err != nil {
			return err
		}
	}
	h.now = to
	return nil
}

// turn records that the limiter has moved to another window.
func (h *yearbook) turn() {
	h.m.Look(h.now)
	if p := h.m.bucket.instead().(*byCalendar).calendar.page.Load(); p.number != h.page {
		h.page, h.most = p.number, h.l.Amount
	}
}

// come is the first waiting call, which asks whether it may proceed.
func (h *yearbook) come(u *holder) error {
	t, wait, ok := h.m.Take(h.now, u.n)
	if wait == bucket.Never { // the amount was reduced
		h.waiting = h.waiting[1:]
		return nil
	}
	if !ok {
		u.told = h.now + wait
		return nil
	}
	h.waiting = h.waiting[1:]
	u.turn = t
	return h.use(u)
}

func (h *yearbook) step() error {
	gap := upTo(h.rng, int64(h.l.Every.Usual())/max(1, h.l.Amount)*8)
	if err := h.advance(h.now + time.Duration(h.rng.IntN(2))*time.Duration(gap)); err != nil {
		return err
	}
	n := 1 + h.rng.Int64N(h.l.Amount)
	switch h.rng.IntN(21) {
	case 0, 1, 2, 3, 4:
		return h.try(n)
	case 5, 6, 7, 8, 9:
		return h.take(n)
	case 10, 11, 12, 13:
		h.back()
	case 14:
		d := time.Duration(upTo(h.rng, int64(gap)))
		h.m.Pause(h.now, h.now+d)
		h.paused = max(h.paused, h.now+d)
	case 15:
		h.m.Owe(h.now, n) // a debt needs no permission; it leaves less for the calls
	case 16:
		h.set()
	case 17, 18:
		h.setWall()
	case 19:
		if len(h.waiting) > 0 {
			return h.come(h.waiting[0])
		}
	case 20:
		h.m.Resume(h.now)
		h.paused = min(h.paused, h.now)
	}
	return nil
}

func (h *yearbook) try(n int64) error {
	before := h.m.Look(h.now)
	if _, end := h.window(); before.Paused == 0 && !before.ResetAt.Equal(end) {
		return fmt.Errorf("it is to reset at %v, not %v", before.ResetAt, end)
	}
	ok := h.m.Try(h.now, n)
	if ok != (before.Left >= n && before.Paused == 0) {
		return fmt.Errorf("try %d: %v, although %+v", n, ok, before)
	}
	if !ok {
		if after := h.m.Look(h.now); after != before {
			return fmt.Errorf("a refusal of %d changed %+v to %+v", n, before, after)
		}
		return nil
	}
	return h.use(&holder{n: n, returned: true})
}

// take takes units, or joins the queue.
func (h *yearbook) take(n int64) error {
	before, ask := h.m.Look(h.now), h.m.Ask(h.now, n)
	t, wait, ok := h.m.Take(h.now, n)
	if wait != ask || ok != (wait == 0) {
		return fmt.Errorf("take %d: wait %v, %v; Ask said %v", n, wait, ok, ask)
	}
	u := &holder{turn: t, n: n, told: h.now + wait}
	if ok {
		return h.use(u)
	}
	if after := h.m.Look(h.now); after != before {
		return fmt.Errorf("a refusal of %d changed %+v to %+v", n, before, after)
	}
	h.waiting = append(h.waiting, u)
	return nil
}

// back returns all or a part of used units. In a later window that must change nothing, so the units stay used there.
// A waiting call holds nothing and just leaves.
func (h *yearbook) back() {
	i := h.rng.IntN(len(h.waiting) + len(h.went) + 1)
	if i < len(h.waiting) {
		h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
		return
	}
	if i -= len(h.waiting); i >= len(h.went) || h.went[i].returned {
		return
	}
	u := h.went[i]
	u.returned = true
	n := h.rng.Int64N(u.n + 1)
	h.turn()
	if h.m.bucket.instead().(*byCalendar).window.Load().page == u.turn.Place {
		h.used[h.windows[u]] -= n
	}
	h.m.Back(h.now, u.turn, n)
}

// set changes the amount.
func (h *yearbook) set() {
	h.turn()
	h.l.Amount = 1 + h.rng.Int64N(20)
	h.m.setLimit(h.now, h.l)
	h.most = max(h.most, h.l.Amount)
}

// setWall sets the wall clock. The limiter notices immediately.
func (h *yearbook) setWall() {
	before, end := h.window()
	shown := h.w.Wall(h.now)
	usual := int64(h.l.Every.Usual())
	switch h.rng.IntN(4) {
	case 0: // within the window
		shown = before.Add(time.Duration(h.rng.Int64N(int64(end.Sub(before)))))
	case 1:
		shown = shown.Add(time.Duration(upTo(h.rng, 3*usual)))
	case 2:
		shown = shown.Add(-time.Duration(upTo(h.rng, usual)))
	case 3:
		shown = shown.Add(-time.Duration(upTo(h.rng, 4*usual)))
	}
	if shown.Sub(h.w.Wall(h.now)).Abs() <= drift {
		return
	}
	h.w.set(h.m, h.now, shown)
	h.m.Look(h.now)
	after, _ := h.window()
	// A clock that is set back by several windows was wrong: the windows that it showed are still to come.
	if p := h.m.bucket.instead().(*byCalendar).calendar.page.Load(); p.closed {
		for start := range h.used {
			if start.After(after) {
				delete(h.used, start)
			}
		}
	}
}

// No calendar window grants more than the amount, in any sequence of grants, waits, returns, debts, pauses and
// changes, including changes of the wall clock.
func TestNoHistoryGoesOverACalendarLimit(t *testing.T) {
	cases(t, 3000, func(rng *rand.Rand) error {
		h, err := newYearbook(rng)
		if err != nil {
			return err
		}
		for step := range 30 + rng.IntN(150) {
			if err := h.step(); err != nil {
				return fmt.Errorf("%v, step %d: %w", h.l, step, err)
			}
		}
		return h.settle()
	})
}

// settle lets all waiting calls proceed, and checks that the next window is full.
func (h *yearbook) settle() error {
	for range 10_000 {
		if len(h.waiting) == 0 {
			break
		}
		if err := h.advance(max(h.now, h.waiting[0].told)); err != nil { // a call with an old prediction has not asked since
			return err
		}
	}
	if len(h.waiting) > 0 {
		return fmt.Errorf("%d still wait", len(h.waiting))
	}
	for range 2 {
		h.now += h.m.Look(h.now).Reset
	}
	if v := h.m.Look(max(h.now, h.paused)); v.Left != v.Full || v.Paused != 0 {
		return fmt.Errorf("in a later window it looks like %+v", v)
	}
	return nil
}
