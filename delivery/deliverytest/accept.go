package deliverytest

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Repeated requests with the same key get the same delivery, at any time and in any state. A different request with the
// key is refused and not stored.
func acceptedOnce(b *bench) {
	r := to("a")
	r.Key = "k"
	first := b.accept(r)
	again := func(when string) {
		b.Helper()
		d, fresh, err := b.q.Accept(b.ctx, r)
		b.must(err)
		if fresh || d.ID != first.ID {
			b.Fatalf("%s: got %s (fresh: %v), want %s", when, d.ID, fresh, first.ID)
		}
	}
	again("at once")
	other := to("a")
	other.Key, other.Body = "k", []byte("goodbye")
	_, _, err := b.q.Accept(b.ctx, other)
	b.wants(err, delivery.ErrKeyReused)
	d := b.one("a", first.ID)
	again("under way")
	b.completes(&d)
	again("delivered")
	b.none("a")
	b.counted()
}

// An accepted request is found under its key and its ID after its time has passed, also after it was deleted. A new
// request whose time has passed is refused and not stored.
func knownWhenLate(b *bench) {
	r := to("a")
	r.Key, r.Expires = "k", time.Now().Add(time.Minute)
	first := b.accept(r)
	byID := to("b")
	byID.ID, byID.Expires = delivery.NewID(time.Now()), r.Expires
	b.accept(byID)
	b.sleep(2 * time.Minute)
	found := func(when string, r *delivery.Request, id string) {
		b.Helper()
		if d, fresh, err := b.q.Accept(b.ctx, r); err != nil || fresh || d.ID != id {
			b.Errorf("%s: %s (fresh: %v), %v; want %s", when, d.ID, fresh, err, id)
		}
		other := *r
		other.Body = []byte("goodbye")
		_, _, err := b.q.Accept(b.ctx, &other)
		b.wants(err, delivery.ErrKeyReused)
	}
	found("late", r, first.ID)
	found("late, by its ID", byID, byID.ID)
	late := *r
	late.Late, late.Expires = &delivery.FieldError{Field: "f", Reason: "it is late"}, time.Time{}
	found("said to be late", &late, first.ID)
	if s := b.sweep(); s.Dead["a"][delivery.Expired] != 1 || !slices.Contains(s.Died, delivery.Letter{Upstream: "a", ID: first.ID, Correlation: first.Correlation, Reason: delivery.Expired}) {
		b.Errorf("swept %+v, want one expired", s)
	}
	found("a dead letter", r, first.ID)
	_, err := b.q.Drop(b.ctx, delivery.Filter{IDs: []string{first.ID}, Status: delivery.Failed}, 1)
	b.must(err)
	found("deleted", r, first.ID)

	for name, q := range map[string]delivery.Request{"a new key": {Key: "new"}, "no key": {}, "a new ID": {ID: delivery.NewID(time.Now())}} {
		q.Upstream, q.Method, q.Path = "c", "POST", "/"
		q.Expires = r.Expires
		var field *delivery.FieldError
		if _, _, err := b.q.Accept(b.ctx, &q); !errors.As(err, &field) || field.Field != "Weir-Deliver-Before" {
			b.Errorf("%s that has expired: %v", name, err)
		}
		q.Expires, q.Late = time.Time{}, late.Late
		if _, _, err := b.q.Accept(b.ctx, &q); !errors.Is(err, late.Late) {
			b.Errorf("%s that is late: %v", name, err)
		}
		q.Late = nil
		q.Body = []byte("another") // the first request was never accepted
		b.accept(&q)
	}
	b.counted()
}

// Keys are separate for each tenant and upstream. Without a key, equal requests are two deliveries.
func keysOfOthers(b *bench) {
	seen := make(map[string]bool)
	for _, r := range []delivery.Request{{Upstream: "a", Key: "k"}, {Upstream: "b", Key: "k"}, {Upstream: "a", Tenant: "t", Key: "k"}, {Upstream: "a"}, {Upstream: "a"}} {
		r.Method, r.Path = "POST", "/"
		seen[b.accept(&r).ID] = true
	}
	if len(seen) != 5 {
		b.Errorf("5 requests got %d deliveries", len(seen))
	}
}

func requestIsKept(b *bench) {
	r := to("a")
	r.Tenant, r.Owner, r.Query, r.Correlation, r.OrderKey, r.Key = "t", "o", "a=%20&b", "c-1", "line", "key"
	r.Header.Add("X-Two", "1")
	r.Header.Add("X-Two", "2")
	r.Body = bytes.Repeat([]byte{0, 1, 0xff, '\n'}, delivery.MaxBody/4)
	r.Expires = time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	r.TokenEnds = r.Expires.Add(time.Minute)
	want := *r
	want.ID = b.accept(r).ID
	if got := b.get(want.ID).Request; !reflect.DeepEqual(got, want) {
		b.Errorf("kept    %.300v\ngave in %.300v", got, want)
	}
	if got := b.one("a", want.ID).Request; !reflect.DeepEqual(got, want) {
		b.Errorf("claimed %.300v\ngave in %.300v", got, want)
	}
}

// After ErrUncertain a retry with the same ID returns the existing delivery.
func theSameID(b *bench) {
	r := to("a")
	r.ID = delivery.NewID(time.Now())
	b.accept(r)
	if d, fresh, err := b.q.Accept(b.ctx, r); err != nil || fresh || d.ID != r.ID || d.Status != delivery.Queued {
		b.Errorf("the same: %s %s (fresh: %v), %v", d.ID, d.Status, fresh, err)
	}
	for name, other := range map[string]delivery.Request{"body": {Body: []byte("other")}, "tenant": {Body: r.Body, Tenant: "t"}, "key": {Body: r.Body, Key: "k"}} {
		q := *r
		q.Body, q.Tenant, q.Key = other.Body, other.Tenant, other.Key
		if _, _, err := b.q.Accept(b.ctx, &q); !errors.Is(err, delivery.ErrKeyReused) {
			b.Errorf("another %s: %v", name, err)
		}
	}
	b.counted()
}

// Headers keep their bytes, even if they are not UTF-8.
func bytesOfHeaders(b *bench) {
	r := to("a")
	r.Header = http.Header{"Title": {"caf\xe9", " a: b ", ""}, "X-Other": {"\x00\xff"}}
	r.Path, r.Query, r.Key, r.OrderKey = "/a\x00b\xff", "x=\xff", "k\x00\xff", "o\x001"
	id := b.accept(r).ID
	r.ID = id
	if got := b.get(id).Request; !reflect.DeepEqual(got, *r) {
		b.Errorf("kept    %+v\ngave in %+v", got, *r)
	}
	r = to("a")
	r.Header.Set("X-Lines", "one\r\nInjected: two")
	var field *delivery.FieldError
	if _, _, err := b.q.Accept(b.ctx, r); !errors.As(err, &field) {
		b.Errorf("a header of two lines: %v", err)
	}
}

func badRequests(b *bench) {
	long := strings.Repeat("k", delivery.MaxKey+1)
	for name, spoil := range map[string]func(*delivery.Request){
		"a body over the bound":     func(r *delivery.Request) { r.Body = make([]byte, delivery.MaxBody+1) },
		"no upstream":               func(r *delivery.Request) { r.Upstream = "" },
		"no path":                   func(r *delivery.Request) { r.Path = "" },
		"a long key":                func(r *delivery.Request) { r.Key = long },
		"a long order key":          func(r *delivery.Request) { r.OrderKey = long },
		"expired":                   func(r *delivery.Request) { r.Expires = time.Now().Add(-time.Second) },
		"no end before the token's": func(r *delivery.Request) { r.TokenEnds = time.Now().Add(time.Hour) },
		"an end after the token's": func(r *delivery.Request) {
			r.TokenEnds, r.Expires = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		},
		"over before it begins": func(r *delivery.Request) {
			r.NotBefore, r.Expires = time.Now().Add(time.Hour), time.Now().Add(time.Minute)
		},
		"over as it begins": func(r *delivery.Request) {
			r.NotBefore = time.Now().Add(time.Hour)
			r.Expires = r.NotBefore
		},
	} {
		r := to("a")
		spoil(r)
		if _, _, err := b.q.Accept(b.ctx, r); err == nil {
			b.Errorf("%s: accepted", name)
		}
	}
	b.none("a")
	b.counted()
}

// Delay and expiry.

func notBefore(b *bench) {
	r := to("a")
	r.NotBefore = time.Now().Add(time.Minute)
	d := b.accept(r)
	b.none("a")
	at, ok, err := b.q.Next(b.ctx, "a", delivery.Mark{})
	b.must(err)
	if wait := time.Until(at); !ok || wait > time.Minute+time.Second || wait < 59*time.Second {
		b.Errorf("next in %v, %v; want a minute", wait, ok)
	}
	b.sleep(59 * time.Second)
	b.none("a")
	b.sleep(2 * time.Second)
	b.one("a", d.ID)
}

func expiry(b *bench) {
	r := to("a")
	r.Expires = time.Now().Add(time.Minute)
	d, behind := b.accept(r), to("a")
	behind.NotBefore, behind.Expires = time.Now().Add(30*time.Second), time.Now().Add(time.Minute)
	b.accept(behind)
	other := to("b")
	other.Expires = r.Expires
	of := b.accept(other)
	b.sleep(2 * time.Minute)
	b.none("a") // before any sweep
	if due, err := b.q.Due(b.ctx, "a", delivery.Mark{}, 10); err != nil || len(due) > 0 {
		b.Errorf("due: %v, %v", ids(due), err)
	}
	if all, err := b.q.Claim(b.ctx, delivery.Ask{Upstream: "a", Only: []int64{d.Seq}, Lease: lease}); err != nil || len(all) > 0 {
		b.Errorf("claimed by name: %v, %v", ids(all), err)
	}
	if w := b.sweepAway(map[string]string{"a": `a\test service unavailable: `, "c": "c"}); w.Dead["a"][delivery.Expired] != 2 || w.Dead["b"][delivery.Expired] != 1 {
		b.Errorf("swept %+v, want three expired", w)
	}
	for id, want := range map[string]string{d.ID: `a\test service unavailable: it expired before it could be delivered`, of.ID: "it expired before it could be delivered"} {
		if got := b.is(id, delivery.Failed, 0); got.Reason != delivery.Expired || got.Detail != want {
			b.Errorf("the reason is %q: %q, want %q", got.Reason, got.Detail, want)
		}
	}
	if w := b.sweep(); len(w.Dead) > 0 {
		b.Errorf("swept %+v once more", w)
	}
}

func expiryPromotes(b *bench) {
	head, next := to("a"), to("a")
	head.OrderKey, next.OrderKey = "line", "line"
	head.Expires, head.NotBefore = time.Now().Add(time.Minute), time.Now().Add(50*time.Second)
	b.accept(head)
	second := b.accept(next)
	b.none("a")
	b.sleep(2 * time.Minute)
	b.sweep()
	b.one("a", second.ID)
}

func cursorOfAnother(b *bench) {
	for range 3 {
		b.accept(to("a"))
	}
	_, cursor, err := b.q.List(b.ctx, delivery.Filter{Upstream: "a"}, "", 1)
	b.must(err)
	for _, wrong := range []string{"x", "AAAA", strings.Repeat("A", 10_000)} {
		_, _, err = b.q.List(b.ctx, delivery.Filter{}, wrong, 1)
		b.wants(err, delivery.ErrCursor)
	}
	_, _, err = b.q.List(b.ctx, delivery.Filter{Upstream: "b"}, cursor, 1)
	b.wants(err, delivery.ErrCursor)
	if _, err := b.q.Get(b.ctx, "nobody"); !errors.Is(err, delivery.ErrNotFound) {
		b.Errorf("get: %v", err)
	}
}
