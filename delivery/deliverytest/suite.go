// Package deliverytest contains the tests that every delivery.Queue must pass.
package deliverytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// An Engine describes how to test a kind of queue.
type Engine struct {
	// In runs a test in an environment where Sleep passes time, such as a synctest bubble. Nil runs it directly.
	In func(t *testing.T, test func(t *testing.T))

	// Open returns an empty queue, which is closed at the end of the test.
	Open func(t *testing.T) delivery.Queue

	// Bounded creates an empty queue with limits for the number and the bytes of deliveries. Each call of open opens it
	// as after a restart. All are closed at the end of the test.
	Bounded func(t *testing.T, most, bytes int64) (open func() delivery.Queue)

	// Sleep passes time for the queue.
	Sleep func(time.Duration)
}

// Test runs all tests.
func Test(t *testing.T, e Engine) {
	if e.In == nil {
		e.In = func(t *testing.T, test func(t *testing.T)) { test(t) }
	}
	for name, test := range map[string]func(*bench){
		"AcceptedOnce":          acceptedOnce,
		"KnownWhenLate":         knownWhenLate,
		"KeysOfOthers":          keysOfOthers,
		"RequestIsKept":         requestIsKept,
		"TheSameID":             theSameID,
		"BytesOfHeaders":        bytesOfHeaders,
		"BadRequests":           badRequests,
		"ClaimsAreExclusive":    claimsAreExclusive,
		"ClaimsGoByUpstream":    claimsGoByUpstream,
		"NotBefore":             notBefore,
		"GiveBackBurnsNothing":  giveBackBurnsNothing,
		"DeferBurnsNothing":     deferBurnsNothing,
		"RetryCounts":           retryCounts,
		"RecordNeedsTheFence":   recordNeedsTheFence,
		"EndsWell":              endsWell,
		"ManyAtOnce":            manyAtOnce,
		"LeaseRunsOut":          leaseRunsOut,
		"RenewedLeaseHolds":     renewedLeaseHolds,
		"ReaperIsConditional":   reaperIsConditional,
		"Poison":                poison,
		"StallsInARow":          stallsInARow,
		"OrderKey":              orderKey,
		"OrderKeyGoesOn":        orderKeyGoesOn,
		"OrderKeysApart":        orderKeysApart,
		"OrderKeyStops":         orderKeyStops,
		"EndedAgain":            endedAgain,
		"KeysOutliveDeliveries": keysOutliveDeliveries,
		"Expiry":                expiry,
		"ExpiryPromotes":        expiryPromotes,
		"Rejected":              rejected,
		"Redrive":               redrive,
		"RedriveAfterTheToken":  redriveAfterTheToken,
		"RedriveGoesToTheEnd":   redriveGoesToTheEnd,
		"RedriveOfTheDelivered": redriveOfTheDelivered,
		"Drop":                  drop,
		"FiltersChooseNothing":  filtersThatChooseNothing,
		"Abandon":               abandon,
		"Pages":                 pages,
		"OldestFirst":           oldestFirst,
		"CursorOfAnother":       cursorOfAnother,
		"Retention":             retention,
		"AttemptsAreKept":       attemptsAreKept,
		"BegunAtOnce":           begunAtOnce,
		"BegunAndLeft":          begunAndLeft,
		"BegunUnderAKey":        begunUnderAKey,
		"CallsBack":             callsBack,
		"LargeBodies":           largeBodies,
		"CallbacksOfNone":       callbacksOfNone,
		"CallbacksOfTheDead":    callbacksOfTheDead,
		"History":               history,
		"Concurrent":            concurrent,
		"Linearizable":          linearizable,
	} {
		t.Run(name, func(t *testing.T) {
			e.In(t, func(t *testing.T) { test(&bench{T: t, q: e.Open(t), sleep: e.Sleep, ctx: context.Background()}) })
		})
	}
	testBounds(t, e)
}

const lease = 30 * time.Second

// A bench is a queue under test.
type bench struct {
	*testing.T
	q     delivery.Queue
	sleep func(time.Duration)
	ctx   context.Context
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func to(upstream string) *delivery.Request {
	return &delivery.Request{Upstream: upstream, Method: "POST", Path: "/in", Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("hello")}
}

func (b *bench) accept(r *delivery.Request) delivery.Delivery {
	b.Helper()
	d, fresh, err := b.q.Accept(b.ctx, r)
	unsure := false
	for range 10 { // retry like a caller, because a busy machine may exceed the timeout
		if !errors.Is(err, delivery.ErrUncertain) {
			break
		}
		again := *r
		again.ID, unsure = d.ID, true
		d, fresh, err = b.q.Accept(b.ctx, &again)
	}
	b.must(err)
	if !fresh && !unsure {
		b.Fatal("it is said to have been there")
	}
	return d
}

func (b *bench) claim(upstream string, most int) []delivery.Delivery {
	b.Helper()
	all, err := b.q.Claim(b.ctx, delivery.Ask{Upstream: upstream, Most: most, Owner: "test", Lease: lease})
	b.must(err)
	return all
}

// one claims the due deliveries and checks that there is only this one.
func (b *bench) one(upstream, id string) delivery.Delivery {
	b.Helper()
	all := b.claim(upstream, 10)
	if len(all) != 1 || all[0].ID != id {
		b.Fatalf("claimed %v, want %s alone", ids(all), id)
	}
	return all[0]
}

func (b *bench) none(upstream string) {
	b.Helper()
	if all := b.claim(upstream, 10); len(all) > 0 {
		b.Fatalf("claimed %v, want nothing", ids(all))
	}
}

func (b *bench) end(e delivery.End) (kept bool) {
	b.Helper()
	lost, err := b.q.End(b.ctx, e)
	b.must(err)
	return len(lost) == 0
}

func (b *bench) completes(d *delivery.Delivery) {
	b.Helper()
	if !b.end(delivery.End{Claim: d.Claim(), To: delivery.Completed}) {
		b.Fatalf("the claim of %s was lost", d.ID)
	}
}

func (b *bench) fails(d *delivery.Delivery) {
	b.Helper()
	if !b.end(delivery.End{Claim: d.Claim(), To: delivery.Failed, Reason: delivery.Rejected, Detail: "404"}) {
		b.Fatalf("the claim of %s was lost", d.ID)
	}
}

func (b *bench) get(id string) delivery.Delivery {
	b.Helper()
	d, err := b.q.Get(b.ctx, id)
	b.must(err)
	return d
}

// is checks a delivery's status and number of attempts.
func (b *bench) is(id string, want delivery.Status, attempts int) delivery.Delivery {
	b.Helper()
	d := b.get(id)
	if d.Status != want || d.Attempts != attempts {
		b.Fatalf("%s is %s after %d attempts, want %s after %d", id, d.Status, d.Attempts, want, attempts)
	}
	b.counted()
	return d
}

// counted checks the counts against the deliveries.
func (b *bench) counted() {
	b.Helper()
	type key struct {
		upstream string
		status   delivery.Status
	}
	want := make(map[key]int64)
	for cursor := ""; ; {
		page, next, err := b.q.List(b.ctx, delivery.Filter{}, cursor, 100)
		b.must(err)
		for _, d := range page {
			want[key{d.Upstream, d.Status}]++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	counts, err := b.q.Counts(b.ctx)
	b.must(err)
	for _, c := range counts {
		k := key{c.Upstream, c.Status}
		if c.N != want[k] {
			b.Fatalf("%d of %s are said to be %s, want %d", c.N, c.Upstream, c.Status, want[k])
		}
		if waits := c.Status == delivery.Created || c.Status == delivery.Queued; !waits && !c.Waiting.IsZero() || c.Status == delivery.Queued && c.Waiting.IsZero() {
			b.Fatalf("the oldest that waits of %d %s: %v", c.N, c.Status, c.Waiting)
		}
		if (c.Status == delivery.Failed) == c.Oldest.IsZero() {
			b.Fatalf("the oldest of %d %s: %v", c.N, c.Status, c.Oldest)
		}
		delete(want, k)
	}
	if len(want) > 0 {
		b.Fatalf("not counted: %v", want)
	}
}

func (b *bench) sweep() delivery.Swept { return b.sweepAway(nil) }

// sweepAway sweeps while upstreams are unavailable.
func (b *bench) sweepAway(away map[string]string) (all delivery.Swept) {
	b.Helper()
	for {
		w, err := b.q.Sweep(b.ctx, away)
		b.must(err)
		all.Reaped, all.Pruned, all.Died = all.Reaped+w.Reaped, all.Pruned+w.Pruned, append(all.Died, w.Died...)
		for upstream, n := range w.Left {
			for range n {
				all.Leaves(upstream)
			}
		}
		if all.Dead == nil {
			all.Dead = w.Dead
		}
		if !w.More {
			return all
		}
	}
}

func (b *bench) wants(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got %v, want %v", err, want)
	}
}

func ids(all []delivery.Delivery) (out []string) {
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s (%s %s)", d.ID, d.Upstream, d.OrderKey))
	}
	return out
}
