package deliverytest

import (
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// begins accepts and claims in one change. can is false if the queue does not support that.
func (b *bench) begins(r *delivery.Request) (d delivery.Delivery, fresh, can bool) {
	b.Helper()
	q, ok := b.q.(delivery.Beginner)
	if !ok {
		return d, false, false
	}
	r.ID = delivery.NewID(time.Now())
	d, fresh, err := q.AcceptBegun(b.ctx, r, delivery.Ask{Upstream: r.Upstream, Owner: "test", Lease: lease})
	b.must(err)
	return d, fresh, true
}

// A delivery that was stored with its first claim is claimed by no other worker, and behaves like a delivery that was
// claimed later.
func begunAtOnce(b *bench) {
	d, fresh, can := b.begins(to("a"))
	if !can {
		return
	}
	if !fresh || d.Status != delivery.Processing || d.Claim() != (delivery.Claim{Seq: d.Seq, Fence: 1}) || d.Attempts != 1 || d.Starts != 1 {
		b.Fatalf("begun as %+v", d)
	}
	b.is(d.ID, delivery.Processing, 1)
	b.none("a")
	if due, err := b.q.Due(b.ctx, "a", delivery.Mark{}, 10); err != nil || len(due) > 0 {
		b.Fatalf("due: %v, %v", ids(due), err)
	}
	if _, ok, err := b.q.Next(b.ctx, "a", delivery.Mark{}); ok || err != nil {
		b.Fatalf("something is said to be queued: %v", err)
	}
	if lost, err := b.q.Renew(b.ctx, 2*lease, d.Claim()); err != nil || len(lost) > 0 {
		b.Fatal(lost, err)
	}
	b.endsTwice(&d)
}

// endsTwice continues a delivery from begins: its lease is renewed, the attempt fails, and it is claimed again.
func (b *bench) endsTwice(d *delivery.Delivery) {
	b.Helper()
	b.sleep(lease + time.Second)
	if w := b.sweep(); w.Reaped > 0 {
		b.Fatal("a claim was reaped that was renewed")
	}
	e := delivery.End{Claim: d.Claim(), To: delivery.Queued, Alone: true, Attempt: &delivery.Attempt{Status: 503}}
	if !b.end(e) || b.end(e) {
		b.Fatal("its end is recorded once")
	}
	c := b.one("a", d.ID)
	if c.Fence != 2 || c.Attempts != 2 {
		b.Fatalf("the second attempt: %+v", c)
	}
	b.completes(&c)
	b.is(d.ID, delivery.Completed, 2)
	if all, err := b.q.Attempts(b.ctx, d.ID); err != nil || len(all) != 1 || all[0].N != 1 || all[0].Series != 1 || all[0].Began.IsZero() {
		b.Fatalf("attempts: %+v, %v", all, err)
	}
}

// A worker stores and claims a delivery in one change and ends. Another worker gets the delivery, and the attempt
// counts.
func begunAndLeft(b *bench) {
	d, _, can := b.begins(to("a"))
	if !can {
		return
	}
	b.sleep(lease + time.Second)
	if w := b.sweep(); w.Reaped != 1 {
		b.Fatalf("%d were reaped", w.Reaped)
	}
	b.is(d.ID, delivery.Queued, 1)
	c := b.one("a", d.ID)
	if b.end(delivery.End{Claim: d.Claim(), To: delivery.Completed, Alone: true}) {
		b.Fatal("a claim that was lost is recorded")
	}
	b.completes(&c)
	b.is(d.ID, delivery.Completed, 2)
}

// With a known key nothing begins, and the caller gets the existing delivery.
func begunUnderAKey(b *bench) {
	keyed := func() *delivery.Request {
		r := to("a")
		r.Key = "k"
		return r
	}
	d, fresh, can := b.begins(keyed())
	if !can {
		return
	}
	again, second, _ := b.begins(keyed())
	if !fresh || second || again.ID != d.ID || again.Fence != 1 {
		b.Fatalf("the second is %+v", again)
	}
	other := keyed()
	other.ID, other.Body = delivery.NewID(time.Now()), []byte("other")
	_, _, err := b.q.(delivery.Beginner).AcceptBegun(b.ctx, other, delivery.Ask{Upstream: "a", Lease: lease})
	b.wants(err, delivery.ErrKeyReused)
	later := to("b")
	later.NotBefore = time.Now().Add(time.Hour)
	if d, _, _ := b.begins(later); d.Status != delivery.Queued {
		b.Fatalf("what is not due yet is %s", d.Status)
	}
	b.completes(&d)
	b.counted()
}
