package deliverytest

import (
	"errors"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

func line(upstream, tenant, key string) *delivery.Request {
	r := to(upstream)
	r.Tenant, r.OrderKey = tenant, key
	return r
}

// Deliveries of an order key are sent one after the other, also while the first is retried.
func orderKey(b *bench) {
	var all []delivery.Delivery
	for range 4 {
		all = append(all, b.accept(line("a", "", "k")))
	}
	b.is(all[0].ID, delivery.Queued, 0)
	b.is(all[3].ID, delivery.Created, 0)
	for i := range all {
		c := b.one("a", all[i].ID)
		b.none("a")
		b.end(delivery.End{Claim: c.Claim(), To: delivery.Queued, Due: time.Now().Add(time.Minute)})
		b.none("a")
		b.sleep(61 * time.Second)
		c = b.one("a", all[i].ID)
		b.completes(&c)
	}
	b.none("a")
}

// After a dead letter the order key continues.
func orderKeyGoesOn(b *bench) {
	first, second := b.accept(line("a", "", "k")), b.accept(line("a", "", "k"))
	c := b.one("a", first.ID)
	b.fails(&c)
	b.one("a", second.ID)
}

// Different order keys do not wait for each other, nor do equal ones of different tenants or upstreams.
func orderKeysApart(b *bench) {
	for _, r := range []*delivery.Request{line("a", "", "k"), line("a", "", "k"), line("a", "t", "k"), line("a", "", "j"), line("b", "", "k"), to("a")} {
		b.accept(r)
	}
	if n := len(b.claim("a", 10)); n != 4 {
		b.Errorf("%d of a were claimed, want 4", n)
	}
	if n := len(b.claim("b", 10)); n != 1 {
		b.Errorf("%d of b were claimed, want 1", n)
	}
}

func rejected(b *bench) {
	d := b.accept(to("a"))
	c := b.one("a", d.ID)
	b.fails(&c)
	if got := b.is(d.ID, delivery.Failed, 1); got.Reason != delivery.Rejected || got.Detail != "404" {
		b.Errorf("the reason is %q: %q", got.Reason, got.Detail)
	}
	b.sleep(24 * time.Hour)
	b.sweep()
	b.none("a")
}

func redrive(b *bench) {
	r := to("a")
	r.Expires = time.Now().Add(time.Minute)
	d, other := b.accept(r), b.accept(to("b"))
	b.sleep(2 * time.Minute)
	b.sweep()
	oc := b.one("b", other.ID)
	b.fails(&oc)
	n, err := b.q.Redrive(b.ctx, delivery.Filter{Upstream: "a"}, 10)
	b.must(err)
	if n != 1 {
		b.Fatalf("redrove %d, want 1", n)
	}
	b.is(other.ID, delivery.Failed, 1)
	if w := b.sweep(); len(w.Dead) > 0 { // it had expired, and must not expire again
		b.Fatalf("swept %+v", w)
	}
	got := b.is(d.ID, delivery.Queued, 0)
	if got.Series != 2 || got.Reason != "" {
		b.Errorf("series %d, reason %q", got.Series, got.Reason)
	}
	c := b.one("a", d.ID)
	if c.Fence <= d.Fence || c.Attempts != 1 {
		b.Errorf("fence %d, attempt %d", c.Fence, c.Attempts)
	}
	b.completes(&c)
}

func redriveGoesToTheEnd(b *bench) {
	first := b.accept(line("a", "", "k"))
	c := b.one("a", first.ID)
	b.fails(&c)
	second, third := b.accept(line("a", "", "k")), b.accept(line("a", "", "k"))
	n, err := b.q.Redrive(b.ctx, delivery.Filter{IDs: []string{first.ID, "nobody"}}, 10)
	b.must(err)
	if n != 1 {
		b.Fatalf("redrove %d, want 1", n)
	}
	b.is(first.ID, delivery.Created, 0)
	for _, id := range []string{second.ID, third.ID, first.ID} {
		c := b.one("a", id)
		b.completes(&c)
	}
}

func redriveOfTheDelivered(b *bench) {
	d := b.accept(to("a"))
	for _, want := range []delivery.Status{delivery.Queued, delivery.Processing, delivery.Completed} {
		switch want {
		case delivery.Processing:
			b.one("a", d.ID)
		case delivery.Completed:
			now := b.get(d.ID)
			b.completes(&now)
		}
		n, err := b.q.Redrive(b.ctx, delivery.Filter{IDs: []string{d.ID}}, 10)
		b.must(err)
		if got := b.get(d.ID).Status; n != 0 || got != want {
			b.Fatalf("redrove %d that are %s; now %s", n, want, got)
		}
	}
}

// Drop makes dead letters of waiting deliveries. It deletes dead letters only if the filter asks for them. It leaves
// processing and completed deliveries.
func drop(b *bench) {
	head, behind := b.accept(line("a", "", "k")), b.accept(line("a", "", "k"))
	under := b.accept(to("b"))
	c := b.one("b", under.ID)
	f := delivery.Filter{IDs: []string{head.ID, under.ID}}
	drops := func(f delivery.Filter, want int) {
		b.Helper()
		n, err := b.q.Drop(b.ctx, f, 10)
		b.must(err)
		if n != want {
			b.Fatalf("dropped %d, want %d", n, want)
		}
		b.counted()
	}
	drops(f, 1)
	drops(f, 0) // otherwise repeated calls would delete the dead letters that they have just made
	b.is(head.ID, delivery.Failed, 0)
	f.Status = delivery.Failed
	drops(f, 1)
	drops(f, 0)
	_, err := b.q.Get(b.ctx, head.ID)
	b.wants(err, delivery.ErrNotFound)
	b.completes(&c)
	b.is(under.ID, delivery.Completed, 1)
	b.one("a", behind.ID)
}

// Invalid filters select no deliveries.
func filtersThatChooseNothing(b *bench) {
	d := b.accept(to("a"))
	var field *delivery.FieldError
	for _, f := range []delivery.Filter{{}, {Status: "dead"}, {Status: "dead", Upstream: "a"}} {
		if n, err := b.q.Drop(b.ctx, f, 10); n > 0 || !errors.As(err, &field) {
			b.Errorf("dropped %d by %+v: %v", n, f, err)
		}
	}
	if n, err := b.q.Redrive(b.ctx, delivery.Filter{Status: "dead"}, 10); n > 0 || !errors.As(err, &field) {
		b.Errorf("redriven %d: %v", n, err)
	}
	if page, _, err := b.q.List(b.ctx, delivery.Filter{Status: "dead"}, "", 10); len(page) > 0 || !errors.As(err, &field) {
		b.Errorf("listed %v: %v", ids(page), err)
	}
	b.is(d.ID, delivery.Queued, 0)
}

func abandon(b *bench) {
	b.accept(line("a", "", "k"))
	b.accept(line("a", "", "k"))
	stays := b.accept(to("b"))
	n, err := b.q.Abandon(b.ctx, "a")
	b.must(err)
	if n != 2 {
		b.Errorf("abandoned %d, want 2", n)
	}
	page, _, err := b.q.List(b.ctx, delivery.Filter{Status: delivery.Failed, Reason: delivery.Gone}, "", 10)
	b.must(err)
	if len(page) != 2 {
		b.Errorf("dead letters: %v", ids(page))
	}
	b.is(stays.ID, delivery.Queued, 0)
}

func pages(b *bench) {
	var want []string
	for i := range 25 {
		d := b.accept(to("a"))
		if b.accept(to("b")); i%2 == 0 {
			want = append([]string{d.ID}, want...)
			n, err := b.q.Drop(b.ctx, delivery.Filter{IDs: []string{d.ID}}, 1)
			b.must(err)
			if n != 1 {
				b.Fatal("not dropped")
			}
		}
	}
	f := delivery.Filter{Upstream: "a", Status: delivery.Failed}
	var got []string
	for cursor, n := "", 0; ; n++ {
		page, next, err := b.q.List(b.ctx, f, cursor, 5)
		b.must(err)
		for _, d := range page {
			got = append(got, d.ID)
		}
		b.accept(to("a")) // new deliveries do not move the pages
		if cursor = next; cursor == "" || n > 10 {
			break
		}
	}
	if len(got) != len(want) {
		b.Fatalf("listed %d, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			b.Errorf("place %d: %s, want %s", i, got[i], want[i])
		}
	}
}

// By default, completed deliveries are kept for a week and dead letters for a month. Waiting deliveries are kept.
func retention(b *bench) {
	r := to("a")
	r.Key = "k"
	done, dead := b.accept(r), b.accept(to("b"))
	waits := b.accept(to("c"))
	c, e := b.one("a", done.ID), b.one("b", dead.ID)
	b.completes(&c)
	b.fails(&e)
	const day = 24 * time.Hour
	b.sleep(6 * day)
	if w := b.sweep(); w.Pruned > 0 {
		b.Fatal("pruned after 6 days")
	}
	b.sleep(2 * day)
	b.sweep()
	_, err := b.q.Get(b.ctx, done.ID)
	b.wants(err, delivery.ErrNotFound)
	b.is(dead.ID, delivery.Failed, 1)
	b.sleep(23 * day)
	b.sweep()
	_, err = b.q.Get(b.ctx, dead.ID)
	b.wants(err, delivery.ErrNotFound)
	b.is(waits.ID, delivery.Queued, 0)
	if _, fresh, err := b.q.Accept(b.ctx, r); err != nil || !fresh {
		b.Errorf("the key of what is gone: %v, %v", fresh, err)
	}
}
