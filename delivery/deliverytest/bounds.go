package deliverytest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// testBounds tests the limits on a queue's size. A named tenant may use half of them.
func testBounds(t *testing.T, e Engine) {
	for name, c := range map[string]struct {
		most, bytes int64
		test        func(b *bench, open func() delivery.Queue)
	}{
		"BoundByCount":         {most: 10, bytes: 1 << 40, test: func(b *bench, open func() delivery.Queue) { bounds(b, open, 10, 5) }},
		"BoundByBytes":         {most: 1 << 40, bytes: 512 << 10, test: func(b *bench, open func() delivery.Queue) { bounds(b, open, 64<<10, 3) }}, // each has a path and headers
		"BoundOfLargeBodies":   {most: 1 << 40, bytes: 4 << 40, test: boundOfLargeBodies},
		"BoundUnderKeys":       {most: 4, bytes: 1 << 40, test: boundUnderKeys},
		"BoundOfTheBegun":      {most: 4, bytes: 1 << 40, test: boundOfTheBegun},
		"BoundOfTheDelivered":  {most: 4, bytes: 1 << 40, test: boundOfTheDelivered},
		"BoundOfConcurrent":    {most: 32, bytes: 1 << 40, test: boundOfConcurrent},
		"BoundOfOneDelivery":   {most: 1, bytes: 1 << 40, test: boundOfOneDelivery},
		"BoundOfAbandoned":     {most: 4, bytes: 1 << 40, test: boundOfAbandoned},
		"BoundAcrossUpstreams": {most: 4, bytes: 1 << 40, test: boundAcrossUpstreams},
		"NotBeforeIsBounded":   {most: 4, bytes: 1 << 40, test: notBeforeIsBounded},
	} {
		t.Run(name, func(t *testing.T) {
			e.In(t, func(t *testing.T) {
				open := e.Bounded(t, c.most, c.bytes)
				c.test(&bench{T: t, q: open(), sleep: e.Sleep, ctx: context.Background()}, open)
			})
		})
	}
}

// ofTenant returns a request of a tenant with a body of the given size.
func ofTenant(tenant string, size int) *delivery.Request {
	r := to("a")
	r.Tenant, r.Owner, r.Body = tenant, tenant, make([]byte, size)
	return r
}

// fill stores requests of a tenant until one is refused. It returns how many were stored, and the refusal.
func (b *bench) fill(tenant string, size int) (n int, err error) {
	b.Helper()
	for ; n < 1000; n++ {
		_, _, err := b.q.Accept(b.ctx, ofTenant(tenant, size))
		if errors.Is(err, delivery.ErrFull) || errors.Is(err, delivery.ErrShare) {
			return n, err
		}
		b.must(err)
	}
	b.Fatal("nothing bounds what is stored")
	return 0, nil
}

// bounds tests a limit that allows each tenant own requests of the given size, which is half of the total.
func bounds(b *bench, open func() delivery.Queue, size, own int) {
	for _, tenant := range []string{"mallory", "alice\xff"} {
		if n, err := b.fill(tenant, size); n != own || !errors.Is(err, delivery.ErrShare) || errors.Is(err, delivery.ErrFull) {
			b.Fatalf("%q stored %d, then %v; want %d and %v", tenant, n, err, own, delivery.ErrShare)
		}
	}
	if n, err := b.fill("", size); n > 1 || !errors.Is(err, delivery.ErrFull) { // the rest after rounding the halves
		b.Errorf("a caller without a name stored %d more, then %v; want %v", n, err, delivery.ErrFull)
	}
	_, _, err := b.q.Accept(b.ctx, ofTenant("bob", size))
	b.wants(err, delivery.ErrFull)
	b.counted()
	b.q = open()
	_, _, err = b.q.Accept(b.ctx, ofTenant("mallory", size))
	b.wants(err, delivery.ErrShare)
	_, _, err = b.q.Accept(b.ctx, ofTenant("bob", size))
	b.wants(err, delivery.ErrFull)

	n, err := b.q.Drop(b.ctx, delivery.Filter{Tenant: "mallory"}, 100)
	b.must(err)
	if n != own {
		b.Errorf("%d were dropped, want %d", n, own)
	}
	_, _, err = b.q.Accept(b.ctx, ofTenant("mallory", size)) // dead letters count too
	b.wants(err, delivery.ErrShare)
	_, err = b.q.Drop(b.ctx, delivery.Filter{Tenant: "mallory", Status: delivery.Failed}, 100)
	b.must(err)
	if n, err := b.fill("mallory", size); n < own-1 || n > own || err == nil {
		b.Errorf("after its dead letters were deleted a tenant stored %d, then %v; want %d", n, err, own)
	}
	b.counted()
}

// A body outside the record counts.
func boundOfLargeBodies(b *bench, _ func() delivery.Queue) {
	large := func(tenant string, n int) *delivery.Request {
		r := ofTenant(tenant, 0)
		r.Large = delivery.Blob{Name: fmt.Sprint("some name.", n), Size: 1 << 40, Sum: sha256.Sum256([]byte{byte(n)})}
		return r
	}
	b.accept(large("mallory", 1))
	_, _, err := b.q.Accept(b.ctx, large("mallory", 2))
	b.wants(err, delivery.ErrShare)
	for n := range 2 {
		b.accept(large("", 3+n))
	}
	_, _, err = b.q.Accept(b.ctx, large("", 5))
	b.wants(err, delivery.ErrFull)
	for _, f := range []delivery.Filter{{Upstream: "a"}, {Status: delivery.Failed}} { // make dead letters of waiting deliveries, then delete them
		_, err = b.q.Drop(b.ctx, f, 10)
		b.must(err)
	}
	b.accept(large("mallory", 6))
}

// A full queue still finds requests that were stored before under a key or an ID.
func boundUnderKeys(b *bench, _ func() delivery.Queue) {
	keyed, named := ofTenant("t", 10), ofTenant("t", 10)
	keyed.Key, named.ID = "k", delivery.NewID(time.Now())
	id := b.accept(keyed).ID
	b.accept(named)
	for what, r := range map[string]*delivery.Request{"a key": keyed, "an ID": named} {
		if d, fresh, err := b.q.Accept(b.ctx, r); err != nil || fresh || d.ID != id && d.ID != named.ID {
			b.Errorf("known by %s: %s (fresh: %v), %v", what, d.ID, fresh, err)
		}
		other := *r
		other.Body = []byte("other")
		_, _, err := b.q.Accept(b.ctx, &other)
		b.wants(err, delivery.ErrKeyReused)
	}
	fresh := ofTenant("t", 10)
	fresh.Key = "new"
	for range 2 { // a refused request leaves no data
		_, _, err := b.q.Accept(b.ctx, fresh)
		b.wants(err, delivery.ErrShare)
	}
	_, err := b.q.Drop(b.ctx, delivery.Filter{IDs: []string{named.ID}}, 1)
	b.must(err)
	_, err = b.q.Drop(b.ctx, delivery.Filter{IDs: []string{named.ID}, Status: delivery.Failed}, 1)
	b.must(err)
	fresh.Body = []byte("another body, as the first was not stored")
	b.accept(fresh)
	b.counted()
}

// The limits apply to AcceptBegun too.
func boundOfTheBegun(b *bench, _ func() delivery.Queue) {
	q, ok := b.q.(delivery.Beginner)
	if !ok {
		return
	}
	for n := range 3 {
		r := ofTenant("t", 10)
		r.ID = delivery.NewID(time.Now())
		d, _, err := q.AcceptBegun(b.ctx, r, delivery.Ask{Upstream: "a", Owner: "test", Lease: lease})
		if n == 2 {
			b.wants(err, delivery.ErrShare)
			break
		}
		b.must(err)
		b.completes(&d)
	}
	b.counted()
}

// Completed deliveries count as long as they are kept.
func boundOfTheDelivered(b *bench, _ func() delivery.Queue) {
	for range 4 {
		b.accept(ofTenant("", 10))
	}
	for _, d := range b.claim("a", 10) {
		b.completes(&d)
	}
	_, _, err := b.q.Accept(b.ctx, ofTenant("", 10))
	b.wants(err, delivery.ErrFull)
	b.sleep(8 * 24 * time.Hour)
	if w := b.sweep(); w.Pruned != 4 {
		b.Errorf("%d were deleted, want 4", w.Pruned)
	}
	if n, err := b.fill("", 10); n != 4 || !errors.Is(err, delivery.ErrFull) {
		b.Errorf("%d were stored, then %v; want 4", n, err)
	}
}

// Concurrent callers do not exceed the limit together, and refused requests do not count.
func boundOfConcurrent(b *bench, _ func() delivery.Queue) {
	var mu sync.Mutex
	had := make(map[string]int)
	var wg sync.WaitGroup
	for i := range 96 {
		wg.Go(func() {
			r := ofTenant([]string{"one", "two", ""}[i%3], 10)
			if i%5 == 0 {
				r.Key = fmt.Sprint("key", i%2)
			}
			if i%7 == 0 {
				r.OrderKey = "line"
			}
			if _, fresh, err := b.q.Accept(b.ctx, r); err == nil && fresh {
				mu.Lock()
				had[r.Tenant]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.sleep(2 * time.Second)
	counts := func() (all int) {
		for _, n := range had {
			all += n
		}
		return all
	}
	if counts() > 32 || had["one"] > 16 || had["two"] > 16 {
		b.Errorf("stored %v, want 32 in all and 16 of a tenant at most", had)
	}
	for _, tenant := range []string{"one", "two", ""} {
		n, err := b.fill(tenant, 10)
		if had[tenant] += n; tenant != "" && errors.Is(err, delivery.ErrShare) && had[tenant] != 16 {
			b.Errorf("%q was refused with %d stored, want 16: %v", tenant, had[tenant], err)
		}
	}
	if counts() != 32 {
		b.Errorf("stored %v, want 32 in all", had)
	}
	b.counted()
}

// A tenant may store one delivery, even with the smallest limit.
func boundOfOneDelivery(b *bench, _ func() delivery.Queue) {
	if n, err := b.fill("t", 10); n != 1 || err == nil {
		b.Errorf("%d were stored, then %v; want 1", n, err)
	}
}

// Dead letters of a removed upstream count until they are deleted.
func boundOfAbandoned(b *bench, _ func() delivery.Queue) {
	n, _ := b.fill("", 10)
	if got, err := b.q.Abandon(b.ctx, "a"); err != nil || got != n {
		b.Fatal(got, err)
	}
	_, _, err := b.q.Accept(b.ctx, ofTenant("", 10))
	b.wants(err, delivery.ErrFull)
	b.sleep(31 * 24 * time.Hour)
	b.sweep()
	b.accept(ofTenant("", 10))
}

// The limit is shared by all upstreams.
func boundAcrossUpstreams(b *bench, _ func() delivery.Queue) {
	send := func(upstream, tenant string) error {
		r := ofTenant(tenant, 10)
		r.Upstream = upstream
		_, _, err := b.q.Accept(b.ctx, r)
		return err
	}
	b.must(send("a", "t"))
	b.must(send("b", "t"))
	b.wants(send("c", "t"), delivery.ErrShare)
	b.must(send("c", "u"))
	b.must(send("d", ""))
	b.wants(send("e", ""), delivery.ErrFull)
}

// NotBefore may be at most 31 days ahead. Otherwise callers could have deliveries stored for any time.
func notBeforeIsBounded(b *bench, _ func() delivery.Queue) {
	for ahead, want := range map[time.Duration]bool{30 * 24 * time.Hour: true, 32 * 24 * time.Hour: false, 100 * 365 * 24 * time.Hour: false} {
		r := ofTenant("", 10)
		r.NotBefore = time.Now().Add(ahead)
		_, _, err := b.q.Accept(b.ctx, r)
		var field *delivery.FieldError
		if want != (err == nil) || !want && (!errors.As(err, &field) || field.Field != "Weir-Not-Before") {
			b.Errorf("%v ahead: %v", ahead, err)
		}
	}
}
