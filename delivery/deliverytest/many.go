package deliverytest

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// Deliveries that are accepted, claimed and ended concurrently keep their own values, even if the queue handles them in
// groups. A lost claim records nothing, even in a group with valid claims.
func manyAtOnce(b *bench) {
	const n = 24
	all := make([]delivery.Delivery, n)
	b.each(n, func(i int) {
		r := to("a")
		r.Tenant, r.Owner, r.Correlation = fmt.Sprint("tenant", i), fmt.Sprint("owner", i), fmt.Sprint("correlation", i)
		r.Path, r.Query, r.Header, r.Body = fmt.Sprint("/in/", i), fmt.Sprint("q=", i), http.Header{"N": {fmt.Sprint(i)}}, fmt.Appendf(nil, "body %d", i)
		if i%3 == 0 {
			r.Upstream = "b"
		}
		if i%8 == 0 {
			r.Key = fmt.Sprint("key", i)
		}
		d, fresh, can := delivery.Delivery{}, false, false
		if i%4 > 0 {
			d, fresh, can = b.begins(r)
		}
		if !can {
			var err error
			d, fresh, err = b.q.Accept(b.ctx, r)
			if err != nil {
				b.Error(err)
			}
		}
		if want := map[bool]delivery.Status{true: delivery.Processing, false: delivery.Queued}[can]; !fresh || d.Status != want {
			b.Errorf("%d: accepted as %s, fresh %v", i, d.Status, fresh)
		}
		all[i] = d
	})
	b.counted()
	for i := range all {
		is := b.get(all[i].ID)
		if is.Tenant != fmt.Sprint("tenant", i) || is.Owner != fmt.Sprint("owner", i) || is.Correlation != fmt.Sprint("correlation", i) || is.Path != fmt.Sprint("/in/", i) ||
			is.Query != fmt.Sprint("q=", i) || is.Header.Get("N") != fmt.Sprint(i) || !bytes.Equal(is.Body, fmt.Appendf(nil, "body %d", i)) || is.Key != all[i].Key || is.Seq != all[i].Seq {
			b.Errorf("%d is kept as %+v", i, is)
		}
		if is.Status == delivery.Queued {
			got, err := b.q.Claim(b.ctx, delivery.Ask{Upstream: is.Upstream, Only: []int64{is.Seq}, Lease: lease})
			if err != nil || len(got) != 1 {
				b.Fatal(got, err)
			}
			all[i] = got[0]
		}
	}
	lost := func(i int) bool { return i%5 == 1 }
	b.each(n, func(i int) {
		e := well(&all[i], i)
		if lost(i) {
			e.Fence++
		}
		if kept := b.end(e); kept == lost(i) {
			b.Errorf("%d: kept %v", i, kept)
		}
	})
	b.counted()
	for i := range all {
		got, err := b.q.Attempts(b.ctx, all[i].ID)
		b.must(err)
		if lost(i) {
			if b.is(all[i].ID, delivery.Processing, 1); len(got) > 0 {
				b.Errorf("%d: %+v was recorded", i, got)
			}
			continue
		}
		b.is(all[i].ID, delivery.Completed, 1)
		want := well(&all[i], i).Attempt
		if len(got) != 1 || got[0].N != 1 || got[0].Series != 1 || got[0].Took != want.Took || got[0].Status != want.Status || got[0].Class != outcome.OK || !bytes.Equal(got[0].Answer, want.Answer) || !got[0].Counted {
			b.Errorf("%d: its attempts are %+v", i, got)
		}
	}
}

// each calls do concurrently for all numbers below n.
func (b *bench) each(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// well returns the End of a successful attempt. n makes its values unique.
func well(d *delivery.Delivery, n int) delivery.End {
	return delivery.End{Claim: d.Claim(), To: delivery.Completed, Alone: d.OrderKey == "", Attempt: &delivery.Attempt{
		N: d.Starts, Series: d.Series, Took: time.Duration(n) * time.Millisecond, Status: 200 + n, Class: outcome.OK, Answer: fmt.Appendf(nil, "answer %d", n), Counted: true,
	}}
}

// A success is recorded once, only with its own claim, and is recognized when it is recorded again.
func endsWell(b *bench) {
	d := b.accept(to("a"))
	old := b.one("a", d.ID)
	b.end(delivery.End{Claim: old.Claim(), To: delivery.Queued, Due: time.Now()})
	if b.end(well(&old, 1)) {
		b.Fatal("what is queued was recorded as delivered")
	}
	b.sleep(time.Second)
	c := b.one("a", d.ID)
	if b.end(well(&old, 2)) {
		b.Fatal("the old claim's end was recorded under the new one")
	}
	b.is(d.ID, delivery.Processing, 2)
	e := well(&c, 3)
	for _, want := range []struct{ again, kept bool }{{false, true}, {false, false}, {true, true}} {
		if e.Again = want.again; b.end(e) != want.kept {
			b.Errorf("asked again %v: kept %v", want.again, !want.kept)
		}
	}
	is := b.is(d.ID, delivery.Completed, 2)
	if !is.Lease.IsZero() || is.Reason != "" || is.Detail != "" {
		b.Errorf("it is kept as %+v", is)
	}
	if got, err := b.q.Attempts(b.ctx, d.ID); err != nil || len(got) != 1 || got[0].N != 2 || string(got[0].Answer) != "answer 3" {
		b.Errorf("attempts: %+v, %v", got, err)
	}
	ordered := to("a")
	ordered.OrderKey = "k"
	d, next := b.accept(ordered), b.accept(ordered)
	c = b.one("a", d.ID)
	b.end(well(&c, 4))
	c = b.one("a", next.ID)
	b.end(well(&c, 5))
	b.is(next.ID, delivery.Completed, 1)
}
