package deliverytest

import (
	"crypto/sha256"
	"errors"

	"github.com/seed1158cd35/weir/delivery"
)

// The reference to a body outside the record is returned with the delivery, and distinguishes requests with the same
// key.
func largeBodies(b *bench) {
	ask := func(body string) *delivery.Request {
		r := to("a")
		r.Key, r.Body = "k", nil
		r.Large = delivery.Blob{Name: "some name." + body, Size: 1 << 40, Sum: sha256.Sum256([]byte(body))}
		return r
	}
	want := ask("one").Large
	d := b.accept(ask("one"))
	due, err := b.q.Due(b.ctx, "a", delivery.Mark{}, 10)
	b.must(err)
	for _, got := range append(due, b.get(d.ID), b.one("a", d.ID)) {
		if got.Large != want || len(got.Body) > 0 || got.Size() != 1<<40 {
			b.Errorf("%s has the body %v and %d bytes, want %v", got.Status, got.Large, len(got.Body), want)
		}
	}
	if got, fresh, err := b.q.Accept(b.ctx, ask("one")); err != nil || fresh || got.ID != d.ID || got.Large != want {
		b.Errorf("once more: %s %v, fresh %v, %v", got.ID, got.Large, fresh, err)
	}
	for _, other := range []*delivery.Request{ask("two"), to("a")} {
		other.Key = "k"
		if _, _, err := b.q.Accept(b.ctx, other); !errors.Is(err, delivery.ErrKeyReused) {
			b.Errorf("another body: %v", err)
		}
	}
	both := ask("one")
	both.Body = []byte("and this")
	if _, _, err := b.q.Accept(b.ctx, both); err == nil {
		b.Error("two bodies were accepted")
	}
}
