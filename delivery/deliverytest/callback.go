package deliverytest

import (
	"errors"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

func calling(upstream string) *delivery.Request {
	r := to(upstream)
	r.Callback = "app"
	return r
}

// owing returns the IDs of deliveries whose callback is not stored yet, read by pages.
func (b *bench) owing() (all []string) {
	b.Helper()
	var after delivery.Mark
	for {
		page, err := b.q.Owing(b.ctx, after, 2)
		b.must(err)
		for _, d := range page {
			if d.Waits() || d.Callback == "" || len(d.Body) > 0 {
				b.Fatalf("%s is %s, calls back %q, has a body of %d", d.ID, d.Status, d.Callback, len(d.Body))
			}
			all = append(all, d.ID)
			after = delivery.Mark{Due: d.Changed, Seq: d.Seq}
		}
		if len(page) < 2 {
			return all
		}
	}
}

func (b *bench) owes(want ...string) {
	b.Helper()
	b.sleep(10 * time.Millisecond) // an index may be updated later
	got := b.owing()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Fatalf("there are to call back %v, want %v", got, want)
	}
}

func (b *bench) told(id string, series int) {
	b.Helper()
	b.must(b.q.Told(b.ctx, b.get(id).Seq, series))
}

// A delivery that has ended and calls back is listed until Told for its present series, however it ended.
func callsBack(b *bench) {
	quiet, d := b.accept(to("a")), b.accept(calling("b"))
	c := b.one("a", quiet.ID)
	b.completes(&c)
	if c = b.one("b", d.ID); c.Callback != "app" || c.Tells != "" {
		b.Fatalf("claimed it calls back %q, tells %q", c.Callback, c.Tells)
	}
	b.owes()
	b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued})
	b.owes()
	c = b.one("b", d.ID)
	b.fails(&c)
	b.owes(d.ID)
	if n, err := b.q.Redrive(b.ctx, delivery.Filter{IDs: []string{d.ID}}, 1); n != 1 || err != nil {
		b.Fatal(n, err)
	}
	b.owes()
	b.told(d.ID, 1) // too late
	c = b.one("b", d.ID)
	b.completes(&c)
	if again := b.end(delivery.End{Claim: c.Claim(), To: delivery.Completed, Again: true}); !again {
		b.Error("recorded once more it is lost")
	}
	b.owes(d.ID)
	b.told(d.ID, 1)
	b.owes(d.ID)
	b.told(d.ID, 2)
	b.owes()
	b.is(d.ID, delivery.Completed, 1)
}

// A callback causes no further callback.
func callbacksOfNone(b *bench) {
	r := calling("a")
	r.ID, r.Tells = delivery.NewID(time.Now()), "some other"
	b.accept(r)
	if c := b.one("a", r.ID); c.Callback != "app" || c.Tells != "some other" {
		b.Errorf("claimed it calls back %q, tells %q", c.Callback, c.Tells)
	} else {
		b.completes(&c)
	}
	b.owes()
	b.told(r.ID, 1)
	b.owes()
}

// Deliveries that end without an attempt call back, as do deliveries of an order key. They are kept until Told.
func callbacksOfTheDead(b *bench) {
	expires, dropped, gone, poison := calling("a"), calling("a"), calling("gone"), calling("poison")
	expires.Expires = time.Now().Add(time.Minute)
	head, behind := calling("line"), calling("line")
	head.OrderKey, behind.OrderKey = "k", "k"
	var want []string
	for _, r := range []*delivery.Request{expires, dropped, gone, poison, head, behind} {
		r.ID = b.accept(r).ID
		want = append(want, r.ID)
	}
	_, err := b.q.Drop(b.ctx, delivery.Filter{IDs: []string{dropped.ID}}, 1)
	b.must(err)
	_, err = b.q.Abandon(b.ctx, "gone")
	b.must(err)
	for _, id := range []string{head.ID, behind.ID} {
		c := b.one("line", id)
		b.completes(&c)
	}
	for range delivery.MaxStalls {
		b.one("poison", poison.ID)
		b.sleep(2 * lease)
		b.sweep()
	}
	b.owes(want...)
	b.sleep(40 * 24 * time.Hour)
	b.sweep()
	b.owes(want...)
	for _, id := range want {
		b.told(id, 1)
	}
	b.owes()
	b.sweep()
	for _, id := range want {
		if _, err := b.q.Get(b.ctx, id); !errors.Is(err, delivery.ErrNotFound) {
			b.Errorf("%s was told of, and is kept: %v", id, err)
		}
	}
}
