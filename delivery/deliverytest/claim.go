package deliverytest

import (
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

func claimsAreExclusive(b *bench) {
	seen := make(map[string]bool)
	for range 10 {
		b.accept(to("a"))
	}
	for _, n := range []int{4, 4, 2, 0} {
		all := b.claim("a", 4)
		if len(all) != n {
			b.Fatalf("claimed %d, want %d", len(all), n)
		}
		for _, d := range all {
			if seen[d.ID] {
				b.Fatalf("%s was claimed twice", d.ID)
			}
			seen[d.ID] = true
			b.is(d.ID, delivery.Processing, 1)
		}
	}
}

// A claim gets the deliveries of an upstream that are due first, or the given ones.
func claimsGoByUpstream(b *bench) {
	one, two, other := b.accept(to("a")), b.accept(to("a")), b.accept(to("b"))
	b.none("c")
	all, err := b.q.Claim(b.ctx, delivery.Ask{Upstream: "a", Only: []int64{two.Seq, other.Seq, 1 << 40}, Lease: lease})
	b.must(err)
	if len(all) != 1 || all[0].ID != two.ID {
		b.Fatalf("claimed %v, want the second alone", ids(all))
	}
	b.one("a", one.ID)
	b.one("b", other.ID)
}

// Attempts that are given back do not count, however often.
func giveBackBurnsNothing(b *bench) {
	d := b.accept(to("a"))
	for range 10 {
		c := b.one("a", d.ID)
		if !b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now().Add(time.Minute), GiveBack: true}) {
			b.Fatal("lost")
		}
		b.is(d.ID, delivery.Queued, 0)
		b.none("a")
		b.sleep(61 * time.Second)
	}
	b.one("a", d.ID)
	b.is(d.ID, delivery.Processing, 1)
}

func deferBurnsNothing(b *bench) {
	d, held := b.accept(to("a")), b.accept(to("b"))
	claim := b.one("b", held.ID)
	b.must(b.q.Defer(b.ctx, time.Now().Add(time.Minute), d.Seq, held.Seq))
	b.none("a")
	b.is(d.ID, delivery.Queued, 0)
	b.is(held.ID, delivery.Processing, 1)
	b.completes(&claim)
	b.must(b.q.Defer(b.ctx, time.Now(), d.Seq)) // Defer does not make it due earlier
	b.none("a")
	b.sleep(61 * time.Second)
	b.one("a", d.ID)
}

func retryCounts(b *bench) {
	d := b.accept(to("a"))
	for n := 1; n <= 3; n++ {
		c := b.one("a", d.ID)
		if c.Attempts != n || c.Starts != n {
			b.Fatalf("attempt %d is said to be %d of %d", n, c.Attempts, c.Starts)
		}
		b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now().Add(time.Minute)})
		b.is(d.ID, delivery.Queued, n)
		b.none("a")
		b.sleep(61 * time.Second)
	}
}

// A worker whose claim is lost cannot record its end, and no end is recorded twice.
func recordNeedsTheFence(b *bench) {
	d := b.accept(to("a"))
	old := b.one("a", d.ID)
	b.end(delivery.End{Claim: old.Claim(), To: delivery.Queued, Due: time.Now()})
	for _, to := range []delivery.Status{delivery.Completed, delivery.Failed, delivery.Queued} {
		if b.end(delivery.End{Claim: old.Claim(), To: to}) {
			b.Fatalf("a delivery that is queued was recorded as %s", to)
		}
	}
	b.sleep(time.Second)
	c := b.one("a", d.ID)
	if c.Fence <= old.Fence {
		b.Fatalf("the fence went from %d to %d", old.Fence, c.Fence)
	}
	if b.end(delivery.End{Claim: old.Claim(), To: delivery.Completed}) {
		b.Fatal("the old claim's end was recorded under the new one")
	}
	b.is(d.ID, delivery.Processing, 2)
	b.completes(&c)
	for _, to := range []delivery.Status{delivery.Completed, delivery.Failed, delivery.Queued} {
		if b.end(delivery.End{Claim: c.Claim(), To: to}) {
			b.Fatalf("what was delivered was recorded as %s", to)
		}
	}
	b.is(d.ID, delivery.Completed, 2)
}

func leaseRunsOut(b *bench) {
	d := b.accept(to("a"))
	c := b.one("a", d.ID)
	b.sleep(lease - time.Second)
	if w := b.sweep(); w.Reaped > 0 {
		b.Fatal("reaped before its time")
	}
	b.sleep(2 * time.Second)
	if w := b.sweep(); w.Reaped != 1 || w.Left["a"] != 1 {
		b.Fatalf("reaped %d, left %v, want one of a", w.Reaped, w.Left)
	}
	b.is(d.ID, delivery.Queued, 1)
	if b.end(delivery.End{Claim: c.Claim(), To: delivery.Completed}) {
		b.Fatal("it was recorded after its lease")
	}
	lost, err := b.q.Renew(b.ctx, lease, c.Claim())
	b.must(err)
	if len(lost) != 1 {
		b.Fatal("a lost lease was renewed")
	}
	b.one("a", d.ID)
}

func renewedLeaseHolds(b *bench) {
	d := b.accept(to("a"))
	c := b.one("a", d.ID)
	for range 5 {
		b.sleep(lease - time.Second)
		lost, err := b.q.Renew(b.ctx, lease, c.Claim())
		b.must(err)
		if w := b.sweep(); w.Reaped > 0 || len(lost) > 0 {
			b.Fatalf("reaped %d, lost %v", w.Reaped, lost)
		}
	}
	b.completes(&c)
	b.is(d.ID, delivery.Completed, 1)
}

// A delivery whose end was recorded does not return to the queue when its lease would have expired.
func reaperIsConditional(b *bench) {
	done, retried := b.accept(to("a")), b.accept(to("a"))
	for _, c := range b.claim("a", 2) {
		switch c.ID {
		case done.ID:
			b.completes(&c)
		default:
			b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now()})
		}
	}
	b.sleep(time.Second)
	later := b.one("a", retried.ID)
	b.sleep(lease - 500*time.Millisecond) // after the first lease, but before the end of the second
	if w := b.sweep(); w.Reaped > 0 {
		b.Fatalf("reaped %d", w.Reaped)
	}
	b.is(done.ID, delivery.Completed, 1)
	b.completes(&later)
}

// A delivery whose attempts begin and never end becomes a dead letter: it may crash its workers.
func poison(b *bench) {
	d := b.accept(to("a"))
	for n := 1; n <= delivery.MaxStalls; n++ {
		b.one("a", d.ID)
		b.sleep(lease + time.Second)
		w := b.sweep()
		if last := n == delivery.MaxStalls; (w.Dead["a"][delivery.Poison] == 1) != last || (len(w.Died) == 1 && w.Died[0].ID == d.ID) != last {
			b.Fatalf("after %d starts: swept %+v", n, w)
		}
	}
	if got := b.is(d.ID, delivery.Failed, delivery.MaxStalls); got.Reason != delivery.Poison || got.Detail == "" {
		b.Errorf("the reason is %q: %q", got.Reason, got.Detail)
	}
	attempts, err := b.q.Attempts(b.ctx, d.ID)
	b.must(err)
	if len(attempts) != delivery.MaxStalls || attempts[0].Class != outcome.Unknown {
		b.Errorf("attempts: %+v", attempts)
	}
}

// Only consecutive attempts without an end count, because an end between them shows that the delivery does not crash
// its worker.
func stallsInARow(b *bench) {
	d := b.accept(to("a"))
	for range 3 * delivery.MaxStalls {
		b.one("a", d.ID)
		b.sleep(lease + time.Second)
		b.sweep()
		c := b.one("a", d.ID)
		b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now()})
		b.sleep(time.Second)
	}
	b.one("a", d.ID)
}

func attemptsAreKept(b *bench) {
	d := b.accept(to("a"))
	answer := make([]byte, delivery.MaxAnswer+100)
	for n := 1; n <= 3; n++ {
		c := b.one("a", d.ID)
		b.sleep(2 * time.Second)
		b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now(), GiveBack: n == 2, Attempt: &delivery.Attempt{
			Took: 2 * time.Second, Status: 503, Class: outcome.Failed, Code: "503", Answer: answer}})
		b.sleep(time.Second)
	}
	all, err := b.q.Attempts(b.ctx, d.ID)
	b.must(err)
	if len(all) != 3 {
		b.Fatalf("%d attempts were kept, want 3", len(all))
	}
	for i, a := range all {
		if a.N != i+1 || a.Series != 1 || a.Status != 503 || a.Class != outcome.Failed || a.Code != "503" || a.Took != 2*time.Second || a.Counted != (i != 1) {
			b.Errorf("attempt %d: %+v", i+1, a)
		}
		if len(a.Answer) != delivery.MaxAnswer {
			b.Errorf("attempt %d: %d bytes of the answer were kept, want %d", i+1, len(a.Answer), delivery.MaxAnswer)
		}
	}
	b.is(d.ID, delivery.Queued, 2)
}
