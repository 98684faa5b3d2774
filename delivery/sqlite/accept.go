package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// Accept stores a request.
func (s *Store) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	return s.accept(ctx, r, r.ID != "", nil)
}

// AcceptBegun stores a request and claims it.
func (s *Store) AcceptBegun(ctx context.Context, r *delivery.Request, a delivery.Ask) (delivery.Delivery, bool, error) {
	return s.accept(ctx, r, false, &a)
}

func (s *Store) accept(ctx context.Context, r *delivery.Request, named bool, begins *delivery.Ask) (delivery.Delivery, bool, error) {
	if err := r.CheckForm(); err != nil {
		return delivery.Delivery{}, false, err
	}
	late := r.CheckTimes(s.o.Wall())
	if late != nil && r.Key == "" && !named {
		return delivery.Delivery{}, false, late
	}
	kept := *r
	kept.Body = bytes.Clone(r.Body) // the caller may return before it is stored, and change it
	if kept.ID == "" {
		kept.ID = delivery.NewID(s.o.Wall())
	}
	header, err := stored.WriteHeader(kept.Header)
	if err != nil {
		return delivery.Delivery{}, false, err
	}
	a := &acceptance{s: s, r: &kept, named: named, begins: begins, late: late, header: header, print: kept.Fingerprint()}
	if err := s.write.do(ctx, true, a.do); err != nil {
		return delivery.Delivery{Request: kept}, false, fmt.Errorf("accept: %w", err)
	}
	return a.is, a.fresh, nil
}

// An acceptance is a request that is being stored.
type acceptance struct {
	s      *Store
	r      *delivery.Request
	named  bool          // the caller made the ID
	begins *delivery.Ask // the claim to make with it; nil for none
	late   error         // why it must not be stored if it is new
	header string
	print  []byte
	is     delivery.Delivery // the delivery, stored now or before
	fresh  bool

	now, due, place int64 // values of its rows
	shape           shape
}

func (a *acceptance) do(c *change) error {
	if c.w.batch.has(a) {
		if err := c.w.write(); err != nil {
			return err
		}
	}
	if found, err := a.known(c); found || err != nil {
		return err
	}
	if a.late != nil {
		return a.late
	}
	if err := c.w.usage.fits(a.r.Tenant, stored.SizeOf(a.r, a.header), &a.s.o); err != nil {
		return err
	}
	if err := a.places(c); err != nil {
		return err
	}
	return a.insert(c)
}

// known finds a delivery that was accepted under the same key or ID.
func (a *acceptance) known(c *change) (bool, error) {
	var id, tenant, key string
	var print []byte
	find := func(condition string, args ...any) (bool, error) {
		return c.row("SELECT id, tenant, coalesce(idem_key, ''), fingerprint FROM delivery WHERE "+condition, args, &id, &tenant, &key, &print)
	}
	found, err := false, error(nil)
	if a.r.Key != "" {
		found, err = find("upstream = ? AND tenant = ? AND idem_key = ? AND idem_key IS NOT NULL", a.r.Upstream, a.r.Tenant, a.r.Key)
	}
	if a.named && !found && err == nil {
		found, err = find("id = ?", a.r.ID)
	}
	if err == nil && !found && a.r.Key != "" {
		return a.past(c)
	}
	if err != nil || !found {
		return false, err
	}
	if tenant != a.r.Tenant || key != a.r.Key || !bytes.Equal(print, a.print) {
		return true, delivery.ErrKeyReused
	}
	a.is, err = c.get(id)
	a.fresh = false
	return true, err
}

// places finds its position within its order key, from 1. It stays 0 without a key.
func (a *acceptance) places(c *change) (err error) {
	if a.r.OrderKey != "" {
		a.place, err = c.lastPlace(a.r.Upstream, a.r.Tenant, a.r.OrderKey)
	}
	return err
}

// lastPlace returns the position after all that an order key has in use; 1 if there is none.
func (c *change) lastPlace(upstream, tenant, key string) (place int64, err error) {
	_, err = c.row(`SELECT coalesce(max(place), 0) + 1 FROM delivery
		WHERE upstream = ? AND tenant = ? AND order_key = ? AND `+inLine,
		[]any{upstream, tenant, key}, &place)
	return place, err
}

func (a *acceptance) insert(c *change) error {
	a.now = a.s.wall()
	a.due = max(a.now, stored.Milli(a.r.NotBefore))
	a.is = delivery.Delivery{Request: *a.r, Status: delivery.Queued, Due: stored.At(a.due), Series: 1, Accepted: stored.At(a.now), Changed: stored.At(a.now)}
	if a.place > 1 {
		a.is.Status = delivery.Created
	}
	a.begin()
	a.fresh, a.shape = true, shapeOf(a)
	c.moved(a.r.Upstream, "", a.is.Status)
	c.stores(a.r.Tenant, 1, stored.SizeOf(a.r, a.header))
	return c.w.put(a)
}

// begin makes the first claim of a delivery if one was requested and the delivery may be sent now.
func (a *acceptance) begin() {
	d := &a.is
	if a.begins == nil || !d.MayGo(stored.At(a.now)) {
		return
	}
	until := a.s.steady() + a.begins.Lease.Milliseconds()
	d.Status, d.Fence, d.Attempts, d.Starts, d.Lease = delivery.Processing, 1, 1, 1, stored.At(until)
}

// told returns the initial value of the column told: 0 if the delivery will call back, otherwise NULL.
func told(r *delivery.Request) any {
	if !r.Calls() {
		return nil
	}
	return 0
}

// instant is stored.Milli, but returns NULL for the zero time.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stored.Milli(t)
}
