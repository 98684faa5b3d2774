package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// holding describes one limit for processes that hold their grants for different times. Each process has a rule
// that allows for its own holding time.
type holding struct {
	of    func(hold time.Duration) *shape
	times []time.Duration
	judge func(went []gone) error
}

// gone is n units and the latest instant at which they could be spent.
type gone struct {
	at time.Duration
	n  int64
}

func holdings() map[string]holding {
	rate := bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}
	slow := bucket.Rate{Amount: 2, Per: time.Second, Burst: 5}
	window := bucket.Window{Amount: 100, Per: time.Second}
	ofBucket := func(r bucket.Rate) func(hold time.Duration) *shape {
		return func(hold time.Duration) *shape { return heldBucket(r, hold) }
	}
	ofRolling := func(hold time.Duration) *shape {
		s := rollingOf("l", window.Amount, window.Per+hold)
		s.rule.Hold = hold.Microseconds()
		return s
	}
	return map[string]holding{
		"bucket":      {ofBucket(rate), []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond}, rateIsHeld(rate)},
		"slow bucket": {ofBucket(slow), []time.Duration{10 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond}, rateIsHeld(slow)},
		"rolling":     {ofRolling, []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}, windowIsHeld(window)},
	}
}

// heldBucket returns a bucket as a process shares it that holds its grants.
func heldBucket(r bucket.Rate, hold time.Duration) *shape {
	s := bucketOf("l", r.Amount, r.Per, r.Burst)
	s.rule.Hold = hold.Microseconds() + 1
	s.rule.Meter.Cap -= s.rule.Hold * s.rule.Meter.Drain
	return s
}

// rateIsHeld checks with an exact bucket, in billionths of a unit.
func rateIsHeld(r bucket.Rate) func(went []gone) error {
	return func(went []gone) error {
		var level int64
		var last time.Duration
		for _, g := range went {
			level = max(0, level-r.Amount*int64(g.at-last)*int64(time.Second/r.Per)) + g.n*1e9
			last = g.at
			if over := level - r.Full()*1e9; over > 0 {
				return fmt.Errorf("at %v: %.3f units over", g.at, float64(over)/1e9)
			}
		}
		return nil
	}
}

func windowIsHeld(w bucket.Window) func(went []gone) error {
	return func(went []gone) error {
		var sum int64
		first := 0
		for _, g := range went {
			for sum += g.n; went[first].at <= g.at-w.Per; first++ {
				sum -= went[first].n
			}
			if sum > w.Amount {
				return fmt.Errorf("at %v: %d of %d", g.at, sum, w.Amount)
			}
		}
		return nil
	}
}

// TestHolds checks a store with processes that hold their grants for different times. They must stay within the
// limit, and use it.
func TestHolds(t *testing.T, open func(t testing.TB) fleet.Store, options ...Option) {
	s := &suite{open: open}
	for _, o := range options {
		o(s)
	}
	holdsDiffer(newWorld(t, s))
	for _, u := range heldLimits {
		for _, every := range []time.Duration{2100 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
			t.Run(fmt.Sprintf("%s used, asked every %v", u.name, every), func(t *testing.T) {
				u.begins(newWorld(t, s), every)
				u.comes(newWorld(t, s), every)
			})
		}
	}
}

// holdsDiffer checks that all units spent stay within the limit if some processes spend them later than the others.
// Each process asks with its own rule.
func holdsDiffer(w *world) {
	for name, h := range holdings() {
		for range raced.Of(8, 1) {
			w.Run(name, func(t *testing.T) { h.play(newWorld(t, w.suite)) })
		}
	}
	w.Run("a lease and none", func(t *testing.T) { leaseAndNone(newWorld(t, w.suite)) })
	w.Run("a look is no lease", func(t *testing.T) { lookIsNoLease(newWorld(t, w.suite)) })
	w.Run("no lease any more", func(t *testing.T) { noLeaseAnyMore(newWorld(t, w.suite)) })
}

// play runs phases. In each phase, some of the processes ask.
func (h holding) play(w *world) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	begin := w.now()
	var went []gone
	var clients []*client
	for range h.times {
		clients = append(clients, w.another())
	}
	take := func(i int, copies, cost int64, late bool) {
		if a := clients[i].take(copies, h.of(h.times[i]).claim(w.now(), cost)); a.Granted > 0 {
			at := a.Now.Sub(begin)
			if late {
				at += h.times[i]
			}
			went = append(went, gone{at, a.Granted * cost})
		}
	}
	random := func(n time.Duration) time.Duration {
		return time.Duration(rng.Int64N(int64(n))).Truncate(time.Microsecond)
	}
	for range 12 {
		active := 1 + rng.IntN(1<<len(h.times)-1)
		delay := rng.IntN(3) // all units are spent immediately, all late, or a random mix
		for range 25 {
			i := rng.IntN(len(h.times))
			if active&(1<<i) == 0 {
				continue
			}
			take(i, 1+rng.Int64N(40), 1, delay == 1 || delay == 2 && rng.IntN(2) == 0)
			w.advance(random(60 * time.Millisecond))
		}
		switch rng.IntN(4) {
		case 0:
			w.advance(random([]time.Duration{4 * time.Second, 3 * time.Minute}[rng.IntN(2)]))
		case 1: // a large call, when the limit has been full for about as long as it requires
			i := rng.IntN(len(h.times))
			r := h.of(h.times[i]).rule
			w.advance(clients[i].take(0, h.of(h.times[i]).claim(w.now(), 1)).Grants[0].Reset + random(2*h.times[len(h.times)-1]))
			take(i, 1, r.Most()-rng.Int64N(3), rng.IntN(2) == 0)
		}
	}
	slices.SortStableFunc(went, func(a, b gone) int { return int(a.at - b.at) })
	if err := h.judge(went); err != nil {
		w.Errorf("seed %#x: %v", seed, err)
	}
}

// leaseAndNone checks that other processes get fewer units while leased units may still be spent. After a while
// without leases, the full limit is available again.
func leaseAndNone(w *world) {
	h := holdings()["bucket"]
	leased, not := h.of(250*time.Millisecond), h.of(10*time.Millisecond)
	b := w.another()
	w.must(25, leased.claim(w.now(), 1))
	w.advance(249 * time.Millisecond)
	if n := b.take(100, not.claim(w.now(), 1)).Granted; n > 75 || n < 70 {
		w.Errorf("%d go beside 25 that were leased, of 100 at once; want 75 at most, and not much less", n)
	}
	for range 40 {
		w.advance(1600 * time.Millisecond)
		b.take(1, not.claim(w.now(), 1))
	}
	if n := b.take(100, not.claim(w.now(), 1)).Granted; n < 95 {
		w.Errorf("%d at once when nobody has leased for a minute, want 98 or so", n)
	}
}

// lookIsNoLease checks that a process that only reads, or is refused, holds nothing. Other processes do not get
// fewer units because of it.
func lookIsNoLease(w *world) {
	h := holdings()["bucket"]
	leased, not := h.of(250*time.Millisecond), h.of(10*time.Millisecond)
	b := w.another()
	w.left(leased.claim(w.now(), 1))
	if n := b.take(100, not.claim(w.now(), 1)).Granted; n < 95 {
		w.Errorf("%d at once after a look by who leases, want 98 or so", n)
	}
	if n := w.take(1, leased.claim(w.now(), 1)).Granted; n > 0 {
		w.Fatalf("%d granted of nothing", n)
	}
	w.advance(500 * time.Millisecond)
	if n := b.take(100, not.claim(w.now(), 1)).Granted; n < 45 {
		w.Errorf("%d half a second after who leases was refused, want 49 or so", n)
	}
}

// noLeaseAnyMore checks the change from leases to none. The leased units are spent late, the later grants
// immediately, and the limit is always exhausted.
func noLeaseAnyMore(w *world) {
	h := holdings()["bucket"]
	lease := 250 * time.Millisecond
	begin, went := w.now(), []gone(nil)
	for i := range 150 {
		hold, late := lease, lease
		if i >= 10 {
			hold, late = 10*time.Millisecond, 0
		}
		if a := w.take(100, h.of(hold).claim(w.now(), 1)); a.Granted > 0 {
			went = append(went, gone{a.Now.Sub(begin) + late, a.Granted})
		}
		w.advance(500 * time.Millisecond)
	}
	slices.SortStableFunc(went, func(a, b gone) int { return int(a.at - b.at) })
	if err := h.judge(went); err != nil {
		w.Error(err)
	}
}

// heldLimit is a limit of 100 units per second. One process takes leases, the other does not.
type heldLimit struct {
	name  string
	burst int64
	lease time.Duration
}

var heldLimits = []heldLimit{{"100/s", 100, 250 * time.Millisecond}, {"6000/min", 6000, time.Second}, {"6000/min by 2s", 6000, 2 * time.Second}}

// begins starts with the process that leases. It must get its turns, although the other process takes all that it
// can.
func (u heldLimit) begins(w *world, every time.Duration) {
	a, asked := u.play(w, every, true)
	if a < asked*9/10 {
		w.Errorf("who leases got %d of %d units that it asked for in turn", a, asked)
	}
}

// comes starts with the process that does not lease.
func (u heldLimit) comes(w *world, every time.Duration) { u.play(w, every, false) }

// play checks that the processes use the limit for two and a half minutes. It returns the units that the leasing
// process got and asked for.
func (u heldLimit) play(w *world, every time.Duration, begins bool) (got, asked int64) {
	of := func(hold time.Duration) *shape {
		return heldBucket(bucket.Rate{Amount: 100, Per: time.Second, Burst: u.burst}, hold)
	}
	leased, not := of(u.lease), of(10*time.Millisecond)
	b := w.another()
	if begins {
		w.must(1, leased.claim(w.now(), 1))
	}
	b.take(u.burst, not.claim(w.now(), 1))
	const step, all = 100 * time.Millisecond, 150 * time.Second
	var n int64
	next := u.lease // some units are available again by then
	for at := step; at <= all; at += step {
		w.advance(step)
		if at >= next {
			next = at + every
			asked++
			got += w.take(1, leased.claim(w.now(), 1)).Granted
		}
		n += b.take(1000, not.claim(w.now(), 1)).Granted
	}
	const most = 100 * int64(all/time.Second)
	if n += got; n < most*95/100 {
		w.Errorf("%d of %d units went, want 95%% at least; %d of %d of who leases", n, most, got, asked)
	}
	return got, asked
}
