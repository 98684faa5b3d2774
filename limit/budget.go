package limit

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// USD is the unit of a budget: millionths of a US dollar. The cost of a call is rounded up to a whole unit.
const USD = "usd"

// USDMost is the key of Call.Cost for the largest cost that a call can have in dollars. USD is the expected cost then.
const USDMost = "usd_most"

// dollar is one US dollar in the unit USD.
const dollar = 1_000_000

// Dollars returns an amount in the unit USD as a number of dollars, with at least two decimals: "12.40", "0.000125".
func Dollars(n int64) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	part := strconv.FormatUint(u%dollar+dollar, 10)[1:]
	for len(part) > 2 && part[len(part)-1] == '0' {
		part = part[:len(part)-1]
	}
	return sign + strconv.FormatUint(u/dollar, 10) + "." + part
}

// A Hold is the amount that a call takes from a budget before its cost is known.
type Hold uint8

const (
	HoldLearned Hold = iota // the expected cost, and the largest possible cost while little is left
	HoldMost                // always the largest possible cost, as far as the estimate of the input and the response limit are right
)

var holds = [...]string{"learned", "most"}

// String returns the name in files: learned or most.
func (h Hold) String() string {
	if int(h) < len(holds) {
		return holds[h]
	}
	return fmt.Sprintf("hold %d", uint8(h))
}

// MarshalText and UnmarshalText use the name in files.
func (h Hold) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

func (h *Hold) UnmarshalText(text []byte) error {
	for i, name := range holds {
		if name == string(text) {
			*h = Hold(i)
			return nil
		}
	}
	return fmt.Errorf("hold %q: want learned or most", text)
}

// IsBudget reports whether the limit counts dollars.
func (l *Limit) IsBudget() bool { return l.Unit == USD }

// amount returns the amount as a text: "25", or "25.00 USD" for a budget.
func (l *Limit) amount() string {
	if l.IsBudget() {
		return Dollars(l.Amount) + " USD"
	}
	return strconv.FormatInt(l.Amount, 10)
}

// validateBudget returns the settings that do not fit the unit.
func (l *Limit) validateBudget() error {
	switch {
	case !l.IsBudget() && l.Hold != HoldLearned:
		return fmt.Errorf("hold %v: only limits with unit usd hold the cost of a call", l.Hold)
	case l.IsBudget() && l.Shape == Bucket:
		return fmt.Errorf("unit usd: a budget is an amount per window, because a bucket that refills allows more than its amount; use shape fixed or rolling")
	}
	return nil
}

// A budget is the shape of a limit in dollars. It adds to another shape which part of its usage is only held: taken by
// calls in flight, whose cost is not known yet. Part of that may come back at any time. So a call that finds too little
// waits if calls in flight hold enough, and is refused if the budget is spent.
type budget struct {
	shape // counts what is spent and held: a calendar or rolling limit, or units that a store grants

	mu     sync.Mutex
	held   int64         // by calls in flight that began in the present window
	window int64         // the number of that window; 0 unless the shape is a local calendar limit
	lasts  time.Duration // how long calls hold: a maximum that decays
}

func newBudget(s shape) *budget { return &budget{shape: s} }

// budgetOf makes a limiter of a limit in dollars a budget. It returns all other limiters unchanged.
func budgetOf(l *Limit, m *Limiter) *Limiter {
	if !l.IsBudget() {
		return m
	}
	return shapedAs(newBudget(m.shape()))
}

// counter returns the shape that counts usage: the limiter's own, or that of its budget.
func (m *Limiter) counter() shape {
	s := m.shape()
	if b, ok := s.(*budget); ok {
		return b.shape
	}
	return s
}

const (
	// heldWait is the wait of a call that waits for held units. These may return at any time, and that wakes the call.
	heldWait = 100 * time.Millisecond

	// defaultLasts is how long calls hold units while that is unknown.
	defaultLasts = 5 * time.Second

	// scarceFrom is the multiple of the held units below which the rest of a budget is scarce. In simulations with 100
	// calls in flight, log-normal costs and budgets from 5 to 100 dollars, it left overshoots below 5 mean calls.
	scarceFrom = 4
)

func (b *budget) take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch t, wait, ok = b.shape.take(now, n); {
	case !ok:
		return t, b.wait(now, n, wait), false
	case n > 0:
		if _, shared := b.shape.(*leased); !shared {
			t.Low = int64(now) // local limits of these shapes do not use it
		}
		b.hold(t)
	}
	return t, 0, true
}

func (b *budget) ask(now time.Duration, n int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(now, n, b.shape.ask(now, n))
}

// then does not add what calls ahead take, because most of them return a part, and then n may be less.
func (b *budget) then(now time.Duration, ahead, n int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.shape.then(now, ahead, n)
	if _, held := b.level(now); held > 0 && wait != bucket.Never && b.shape.pausedFor(now) == 0 {
		return min(wait, heldWait)
	}
	return wait
}

// wait shortens the wait for n units if calls in flight hold enough of them.
func (b *budget) wait(now time.Duration, n int64, wait time.Duration) time.Duration {
	if wait <= heldWait || wait == bucket.Never || b.shape.pausedFor(now) > 0 {
		return wait
	}
	if free, held := b.level(now); held > 0 && free+held >= n {
		return heldWait
	}
	return wait
}

// ofStore is wait for the wait that a store has computed.
func (b *budget) ofStore(now time.Duration, n int64, wait time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(now, n, wait)
}

// level returns the units that are neither spent nor held, negative if there is a debt, and the held units.
func (b *budget) level(now time.Duration) (free, held int64) {
	held = b.held
	switch x := b.shape.(type) {
	case *byCalendar:
		_, w := x.at(now)
		used, _ := w.units()
		if w.page != b.window {
			held = 0
		}
		return w.amount - used, held
	case *rolling:
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.log.Free(now), held
	case *leased: // other processes hold units, too
		v := x.look(now)
		return v.Left, min(max(held, x.Held(now)), v.Full-v.Left)
	}
	panic("limit: a budget of another shape") // Validate refuses it
}

// hold counts a turn as held.
func (b *budget) hold(t Turn) {
	if _, ok := b.shape.(*byCalendar); ok && t.Place != b.window {
		b.window, b.held = t.Place, 0
	}
	b.held += t.Cost
}

// holds is hold for a turn that a store granted.
func (b *budget) holds(t Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold(t)
}

// settle ends a hold: the call has cost used units. It returns units that it could not charge, because the limiter was
// replaced. A call whose window has ended charges nothing to the present one.
func (b *budget) settle(now time.Duration, t Turn, used int64) (owed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x, ok := b.shape.(*byCalendar); ok {
		if _, w := x.at(now); t.Cost > 0 && t.Place != w.page {
			return 0
		}
	}
	if b.window == 0 || t.Place == b.window {
		b.held = max(0, b.held-t.Cost)
	}
	x, shared := b.shape.(*leased)
	if !shared && t.Cost > 0 {
		took := now - time.Duration(t.Low)
		b.lasts = max(took, b.lasts-(b.lasts-took)/16)
	}
	switch {
	case used < t.Cost:
		b.shape.back(now, t, t.Cost-used)
	case used > t.Cost && b.shape.retired():
		owed = used - t.Cost
	case used > t.Cost:
		b.shape.owe(now, used-t.Cost)
	}
	if shared && t.Cost > 0 {
		x.Spent(now, t, used) // after the others have returned: other processes must not see them as spent
	}
	return owed
}

// price returns the amount that a call with the given expected and largest cost takes. The costs of calls in flight may
// exceed their holds, and then the budget. So if the rest is small compared with the amount held, the call takes its
// largest cost. If less than that is unspent, it takes everything unspent, and waits until no other call holds units.
func (b *budget) price(now time.Duration, expected, most int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	free, held := b.level(now)
	if held == 0 || free/scarceFrom >= held {
		return expected
	}
	return max(expected, min(most, free+held))
}

func (b *budget) look(now time.Duration) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.shape.look(now)
	free, held := b.level(now)
	v.Held = max(0, free+held) - max(0, free)
	if v.HeldFor = b.lasts; v.HeldFor == 0 {
		v.HeldFor = defaultLasts
	}
	return v
}

// copyTo copies a limiter that is not in use yet, so nothing is held.
func (b *budget) copyTo(t *Limiter) {
	b.shape.copyTo(t)
	t.bucket.grow().instead = newBudget(t.bucket.instead())
}

func (b *budget) close(now time.Duration) (heir *Limiter, owed int64) {
	heir, owed = b.shape.close(now)
	return shapedAs(newBudget(heir.shape())), owed
}

// prices sets what a charge to a budget takes at present.
func (e *entry) prices(now time.Duration) {
	if b, ok := e.limiter.shape().(*budget); ok {
		e.Cost = b.price(now, e.least, e.most)
	}
}

// settleHold ends what a charge to a budget holds: the call has cost used units.
func (e *entry) settleHold(now time.Duration, used int64) {
	b, ok := e.limiter.shape().(*budget)
	if !ok {
		return
	}
	if owed := b.settle(now, e.turn, used); owed > 0 {
		e.Registry.Get(now, e.Key).Owe(now, owed)
	}
}

// Unbilled ends what the charges to budgets hold, after an attempt that failed, unless used contains its cost.
func (p *Charges) Unbilled(now time.Duration, used map[string]int64) {
	if _, said := used[USD]; said {
		return
	}
	for i := range p.n {
		if e := p.at(i); e.held && e.Registry.budget {
			e.settleHold(now, 0)
			e.held = false
		}
	}
}
