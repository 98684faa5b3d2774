package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A world is what one subtest has to itself: a group that nobody else knows, and
// clients that share it.
type world struct {
	*testing.T
	*suite
	*client
	group string
}

// patience is how long one call to the store may take.
const patience = 10 * time.Second

func newWorld(t *testing.T, s *suite) *world {
	w := &world{T: t, suite: s, group: fmt.Sprintf("%.40s %016x", t.Name(), rand.Uint64())}
	w.client = w.another()
	return w
}

// A client is one process that shares the store.
type client struct {
	w     *world
	store fleet.Store
	lane  uint64
}

// another is one more client.
func (w *world) another() *client {
	return &client{w, w.open(w), rand.Uint64()}
}

// lanes is one more lane of the same client.
func (c *client) another() *client { return &client{c.w, c.store, rand.Uint64()} }

// fresh is a number that no ask has had.
func fresh() uint64 { return rand.Uint64() | 1 }

// ask is an ask of this client that has not been made yet.
func (c *client) ask(copies int64, claims ...fleet.Claim) *fleet.Ask {
	return &fleet.Ask{Group: c.w.group, ID: fresh(), Lane: c.lane, Copies: copies, Claims: claims}
}

// do makes an ask that must succeed.
func (c *client) do(a *fleet.Ask) *fleet.Ask {
	c.w.Helper()
	if err := c.try(a); err != nil {
		c.w.Fatalf("take: %v", err)
	}
	return a
}

func (c *client) try(a *fleet.Ask) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.store.Take(ctx, a)
}

// take asks for copies of a call.
func (c *client) take(copies int64, claims ...fleet.Claim) *fleet.Ask {
	c.w.Helper()
	return c.do(c.ask(copies, claims...))
}

// must takes copies that are there.
func (c *client) must(copies int64, claims ...fleet.Claim) *fleet.Ask {
	c.w.Helper()
	a := c.take(copies, claims...)
	if a.Granted != copies {
		c.w.Fatalf("granted %d copies, want %d: %+v", a.Granted, copies, a.Grants)
	}
	return a
}

// settle tells the store of something and asks for nothing.
func (c *client) settle(s ...fleet.Settlement) *fleet.Ask {
	c.w.Helper()
	a := c.ask(0)
	a.Settle = s
	return c.do(a)
}

// left looks how much of a limit is there.
func (c *client) left(k fleet.Claim) int64 {
	c.w.Helper()
	return c.look(k).Left
}

func (c *client) look(k fleet.Claim) fleet.Grant {
	c.w.Helper()
	k.Extra = 0
	a := c.take(0, k)
	if len(a.Grants) != 1 {
		c.w.Fatalf("%d grants, want one for each claim", len(a.Grants))
	}
	return a.Grants[0]
}

func (c *client) wantLeft(k fleet.Claim, want int64, why string) {
	c.w.Helper()
	if got := c.left(k); got != want {
		c.w.Fatalf("%s: %d left, want %d", why, got, want)
	}
}

// now is the store's clock.
func (w *world) now() time.Time {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, now, err := w.store.Load(ctx, w.group, nil)
	if err != nil {
		w.Fatalf("load: %v", err)
	}
	return now
}

// pass lets the store's clock go on by d at least, by exactly d if it is driven.
func (w *world) pass(d time.Duration) {
	w.Helper()
	if w.advance != nil {
		w.advance(d)
		return
	}
	until := w.now().Add(d)
	for now := w.now(); now.Before(until); now = w.now() {
		time.Sleep(min(until.Sub(now), 20*time.Millisecond))
	}
}

// granted asks until all copies are granted, and returns the last refusal and the
// grant.
func (c *client) granted(copies int64, make func(now time.Time) []fleet.Claim) (refusal, grant *fleet.Ask) {
	c.w.Helper()
	for range 10_000 {
		a := c.take(copies, make(c.w.now())...)
		if a.Granted == copies {
			return refusal, a
		}
		refusal = a
		c.w.pass(min(max(time.Microsecond, longestWait(a)), 20*time.Millisecond))
	}
	c.w.Fatalf("never granted; last: %+v", refusal)
	return nil, nil
}

// conclusively runs a test again, in a world of its own, while it says that the
// machine was too slow for it to mean anything.
func (w *world) conclusively(test func(w *world) (conclusive bool)) {
	w.Helper()
	for range 20 {
		if test(newWorld(w.T, w.suite)) {
			return
		}
	}
	w.Fatal("the machine was too slow, 20 times")
}

func longestWait(a *fleet.Ask) (d time.Duration) {
	for _, g := range a.Grants {
		d = max(d, g.Wait)
	}
	return d
}

// A shape makes claims to a limit of one of the shapes.
type shape struct {
	name   string
	rule   *fleet.Rule
	begin  time.Time
	period time.Duration // of Calendar
	full   int64
}

// claim is a claim at the store's time.
func (s *shape) claim(now time.Time, cost int64) fleet.Claim {
	k := fleet.Claim{Rule: s.rule, Key: "k", Cost: cost}
	if s.rule.Shape == limit.Calendar {
		k.Windows = s.windows(now)
	}
	return k
}

func (s *shape) windows(now time.Time) limit.Windows {
	n := now.Sub(s.begin) / s.period
	if now.Before(s.begin) {
		n--
	}
	start := s.begin.Add(n * s.period)
	return limit.Windows{Start: start, End: start.Add(s.period), Next: start.Add(2 * s.period)}
}

// settlement is one of units that a grant of this limit had.
func (s *shape) settlement(now time.Time, back int64, m fleet.Mark) fleet.Settlement {
	return fleet.Settlement{Rule: s.rule, Key: "k", Windows: s.claim(now, 1).Windows, Back: back, Mark: m}
}

func bucketOf(name string, amount int64, per time.Duration, burst int64) *shape {
	r := bucket.Rate{Amount: amount, Per: per, Burst: burst}
	return &shape{name: "bucket", full: burst, rule: &fleet.Rule{Name: name, Shape: limit.Bucket, Meter: bucket.MeterOf(r)}}
}

func rollingOf(name string, amount int64, per time.Duration) *shape {
	ring := bucket.RingOf(bucket.Window{Amount: amount, Per: per})
	return &shape{name: "rolling", full: amount, rule: &fleet.Rule{Name: name, Shape: limit.Rolling, Amount: amount, Ring: ring}}
}

// fixedOf has windows of which one began an eighth of the period ago.
func (w *world) fixedOf(name string, amount int64, per time.Duration) *shape {
	w.Helper()
	return &shape{
		name: "fixed", full: amount, begin: w.now().Truncate(time.Microsecond).Add(-per / 8), period: per,
		rule: &fleet.Rule{Name: name, Shape: limit.Calendar, Amount: amount},
	}
}

// slow are limits of the amount that get nothing back while a test lasts.
func (w *world) slow(amount int64) []*shape {
	return []*shape{
		bucketOf("slow bucket", 1, 100*time.Hour, amount),
		rollingOf("slow rolling", amount, 100*time.Hour),
		w.fixedOf("slow fixed", amount, 100*time.Hour),
	}
}

// quick are limits of the amount that are full again after about a fifth of a
// second.
func (w *world) quick(amount int64) []*shape {
	return []*shape{
		bucketOf("quick bucket", amount, 200*time.Millisecond, amount),
		rollingOf("quick rolling", amount, 200*time.Millisecond),
		w.fixedOf("quick fixed", amount, 200*time.Millisecond),
	}
}

// each runs a test for every shape in a world of its own.
func (w *world) each(shapes func(w *world) []*shape, test func(w *world, s *shape)) {
	for i, s := range shapes(w) {
		w.Run(s.name, func(t *testing.T) {
			w := newWorld(t, w.suite)
			test(w, shapes(w)[i])
		})
	}
}

func slowOf(amount int64) func(w *world) []*shape {
	return func(w *world) []*shape { return w.slow(amount) }
}

func quickOf(amount int64) func(w *world) []*shape {
	return func(w *world) []*shape { return w.quick(amount) }
}
