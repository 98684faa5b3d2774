package deliverytest

import (
	"errors"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// With Stop, deliveries after a dead letter of their order key wait until it is redriven, which keeps its position, and
// completed, or until it is dropped.
func orderKeyStops(b *bench) {
	stopping := func() delivery.Delivery {
		r := line("a", "", "k")
		r.Stop = true
		return b.accept(r)
	}
	dies := func(id string) {
		c := b.one("a", id)
		b.fails(&c)
	}
	first, second := stopping(), stopping()
	dies(first.ID)
	third := stopping()
	b.none("a")
	b.is(second.ID, delivery.Created, 0)
	b.is(third.ID, delivery.Created, 0)
	other := b.accept(line("a", "", "other"))
	c := b.one("a", other.ID)
	b.completes(&c)

	n, err := b.q.Redrive(b.ctx, delivery.Filter{IDs: []string{first.ID}}, 10)
	b.must(err)
	if n != 1 {
		b.Fatalf("redrove %d, want 1", n)
	}
	c = b.one("a", first.ID)
	b.none("a")
	b.completes(&c)
	dies(second.ID)
	b.none("a")
	n, err = b.q.Drop(b.ctx, delivery.Filter{IDs: []string{second.ID}, Status: delivery.Failed}, 10)
	b.must(err)
	if n != 1 {
		b.Fatalf("dropped %d, want 1", n)
	}
	dies(third.ID)
	b.sleep(31 * 24 * time.Hour) // after its retention
	behind := stopping()
	b.none("a")
	for {
		if w := b.sweep(); !w.More {
			break
		}
	}
	c = b.one("a", behind.ID)
	b.completes(&c)

	// A dropped delivery blocks no other.
	head, next := stopping(), stopping()
	n, err = b.q.Drop(b.ctx, delivery.Filter{IDs: []string{head.ID}}, 10)
	b.must(err)
	if n != 1 {
		b.Fatalf("dropped %d, want 1", n)
	}
	c = b.one("a", next.ID)
	b.completes(&c)
}

// If an end was recorded but its response lost, repeating it with Again does not report a lost claim. An expired claim
// is lost.
func endedAgain(b *bench) {
	for _, end := range []delivery.End{{To: delivery.Completed}, {To: delivery.Failed, Reason: delivery.Rejected}, {To: delivery.Queued}, {To: delivery.Queued, GiveBack: true}} {
		d := b.accept(to("a"))
		c := b.one("a", d.ID)
		end.Claim = c.Claim()
		for _, end.Again = range []bool{false, true, true} {
			lost, err := b.q.End(b.ctx, end)
			b.must(err)
			if len(lost) > 0 {
				b.Errorf("%s, again %v: lost", end.To, end.Again)
			}
		}
		if got, err := b.q.Attempts(b.ctx, d.ID); err != nil || len(got) > 1 {
			b.Errorf("%d attempts were recorded, %v", len(got), err)
		}
		if end.To == delivery.Queued {
			c = b.one("a", d.ID)
			b.completes(&c)
		}
	}
	d := b.accept(to("a"))
	c := b.one("a", d.ID)
	b.sleep(2 * lease)
	b.sweep()
	lost, err := b.q.End(b.ctx, delivery.End{Claim: c.Claim(), To: delivery.Completed, Again: true})
	b.must(err)
	if len(lost) != 1 || b.get(d.ID).Status != delivery.Queued {
		b.Errorf("a claim that ran out: %v, and it is %s", lost, b.get(d.ID).Status)
	}
}

// A key is kept as long as a dead letter would be, even if its delivery was deleted before.
func keysOutliveDeliveries(b *bench) {
	ask := func() *delivery.Request {
		r := to("a")
		r.Key = "k"
		return r
	}
	d := b.accept(ask())
	c := b.one("a", d.ID)
	b.completes(&c)
	b.sleep(8 * 24 * time.Hour)
	for b.sweep().More {
	}
	if _, err := b.q.Get(b.ctx, d.ID); !errors.Is(err, delivery.ErrNotFound) {
		b.Fatalf("it is kept: %v", err)
	}
	got, fresh, err := b.q.Accept(b.ctx, ask())
	b.must(err)
	if fresh || got.ID != d.ID || got.Status != delivery.Completed || !got.Accepted.Equal(d.Accepted) {
		b.Errorf("again: %s, %s, fresh %v; want %s", got.ID, got.Status, fresh, d.ID)
	}
	other := ask()
	other.Body = []byte("another")
	if _, _, err := b.q.Accept(b.ctx, other); !errors.Is(err, delivery.ErrKeyReused) {
		b.Errorf("another request: %v", err)
	}
	b.sleep(23 * 24 * time.Hour)
	for b.sweep().More {
	}
	if got, fresh, err := b.q.Accept(b.ctx, ask()); err != nil || !fresh || got.ID == d.ID {
		b.Errorf("after all: %s, fresh %v, %v", got.ID, fresh, err)
	}
}

// A redrive does not extend the rights of a caller's token. The delivery expires with the token again. After the token
// has ended, the delivery stays a dead letter unless TokenEnded is set.
func redriveAfterTheToken(b *bench) {
	ask := to("a")
	ask.Expires, ask.TokenEnds = time.Now().Add(time.Minute), time.Now().Add(time.Hour).Truncate(time.Second)
	d := b.accept(ask)
	redrives := func(f delivery.Filter, want int) {
		b.Helper()
		n, err := b.q.Redrive(b.ctx, f, 10)
		b.must(err)
		if n != want {
			b.Fatalf("redrove %d by %+v, want %d", n, f, want)
		}
		b.counted()
	}
	b.sleep(2 * time.Minute)
	b.sweep()
	b.is(d.ID, delivery.Failed, 0)
	redrives(delivery.Filter{Upstream: "a"}, 1)
	if got := b.is(d.ID, delivery.Queued, 0); !got.Expires.Equal(ask.TokenEnds) || !got.TokenEnds.Equal(ask.TokenEnds) {
		b.Errorf("redriven it expires at %v, want with the token at %v, which is said to be %v", got.Expires, ask.TokenEnds, got.TokenEnds)
	}
	b.sleep(time.Hour)
	b.none("a")
	b.sweep()
	redrives(delivery.Filter{Upstream: "a"}, 0)
	redrives(delivery.Filter{IDs: []string{d.ID}}, 0)
	b.is(d.ID, delivery.Failed, 0)
	for range 2 {
		redrives(delivery.Filter{IDs: []string{d.ID}, TokenEnded: true}, 1)
		if got := b.is(d.ID, delivery.Queued, 0); !got.Expires.IsZero() {
			b.Errorf("redriven by somebody who knows it expires at %v", got.Expires)
		}
		c := b.one("a", d.ID)
		b.fails(&c)
		redrives(delivery.Filter{Upstream: "a"}, 0) // each redrive needs TokenEnded again
	}
}

// A list may begin with the oldest delivery. Its cursor is valid for no other list.
func oldestFirst(b *bench) {
	var want, got []string
	for _, upstream := range []string{"b", "a", "b", "a", "a"} {
		want = append(want, b.accept(to(upstream)).ID)
	}
	f, cursor := delivery.Filter{Oldest: true}, ""
	for {
		page, next, err := b.q.List(b.ctx, f, cursor, 2)
		b.must(err)
		for _, d := range page {
			got = append(got, d.ID)
		}
		if next == "" {
			break
		}
		_, _, err = b.q.List(b.ctx, delivery.Filter{}, next, 2)
		b.wants(err, delivery.ErrCursor)
		cursor = next
	}
	if !slices.Equal(got, want) {
		b.Errorf("listed %v, want %v", got, want)
	}
}
