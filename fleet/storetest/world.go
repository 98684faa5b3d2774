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

// A world is the environment of one subtest: a unique group, and clients that share it.
type world struct {
	*testing.T
	*suite
	*client
	group string
}

// patience is the timeout of one call to the store.
const patience = 10 * time.Second

func newWorld(t *testing.T, s *suite) *world {
	w := &world{T: t, suite: s, group: fmt.Sprintf("%.40s %016x", t.Name(), rand.Uint64())}
	w.client = w.another()
	return w
}

// A client is a process that uses the store.
type client struct {
	w     *world
	store fleet.Store
	lane  uint64
}

// another returns a new client.
func (w *world) another() *client {
	return &client{w, w.open(w), rand.Uint64()}
}

// another returns the same client with a new lane.
func (c *client) another() *client { return &client{c.w, c.store, rand.Uint64()} }

// fresh returns an ID that no other ask has.
func fresh() uint64 { return rand.Uint64() | 1 }

// ask returns an ask of this client without sending it.
func (c *client) ask(copies int64, claims ...fleet.Claim) *fleet.Ask {
	return &fleet.Ask{Group: c.w.group, ID: fresh(), Lane: c.lane, Copies: copies, Claims: claims}
}

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

// must takes copies that must be available.
func (c *client) must(copies int64, claims ...fleet.Claim) *fleet.Ask {
	c.w.Helper()
	a := c.take(copies, claims...)
	if a.Granted != copies {
		c.w.Fatalf("granted %d copies, want %d: %+v", a.Granted, copies, a.Grants)
	}
	return a
}

// settle sends settlements without claims.
func (c *client) settle(s ...fleet.Settlement) *fleet.Ask {
	c.w.Helper()
	a := c.ask(0)
	a.Settle = s
	return c.do(a)
}

// left returns the remaining units of a limit.
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

// now returns the time of the store's clock.
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

// pass waits until the store's clock has moved by at least d, by exactly d if it is driven.
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

// granted asks until all copies are granted. It returns the last refusal and the grant.
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

// conclusively repeats a test in a new world while the test reports that the machine was too slow.
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

// A shape makes claims to a limit of one limit.Shape.
type shape struct {
	name   string
	rule   *fleet.Rule
	begin  time.Time
	period time.Duration // of Calendar
	full   int64
}

// claim returns a claim at time now of the store.
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

// settlement returns a settlement of units that this limit granted.
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

// fixedOf returns a calendar limit. One of its windows began an eighth of the period ago.
func (w *world) fixedOf(name string, amount int64, per time.Duration) *shape {
	w.Helper()
	return &shape{
		name: "fixed", full: amount, begin: w.now().Truncate(time.Microsecond).Add(-per / 8), period: per,
		rule: &fleet.Rule{Name: name, Shape: limit.Calendar, Amount: amount},
	}
}

// slow returns limits with this amount that do not refill while a test runs.
func (w *world) slow(amount int64) []*shape {
	return []*shape{
		bucketOf("slow bucket", 1, 100*time.Hour, amount),
		rollingOf("slow rolling", amount, 100*time.Hour),
		w.fixedOf("slow fixed", amount, 100*time.Hour),
	}
}

// quick returns limits with this amount that refill in about 200 ms.
func (w *world) quick(amount int64) []*shape {
	return []*shape{
		bucketOf("quick bucket", amount, 200*time.Millisecond, amount),
		rollingOf("quick rolling", amount, 200*time.Millisecond),
		w.fixedOf("quick fixed", amount, 200*time.Millisecond),
	}
}

// each runs a test for every shape, each in its own world.
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
