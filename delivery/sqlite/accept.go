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
	kept.Body = bytes.Clone(r.Body) // the caller may go before it is stored, and change it
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
	begins *delivery.Ask // by which it is claimed; nil if it is not
	late   error         // why it is not stored if it is new
	header string
	print  []byte
	is     delivery.Delivery // that was stored, or was there
	fresh  bool
}

func (a *acceptance) do(c *change) error {
	if found, err := a.known(c); found || err != nil {
		return err
	}
	if a.late != nil {
		return a.late
	}
	place, err := a.place(c)
	if err != nil {
		return err
	}
	return a.insert(c, place)
}

// known finds the delivery that was accepted under the same key, or the same ID.
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

// place is that in the line of the order key; 0 if there is no key, 1 for the first.
func (a *acceptance) place(c *change) (place int64, err error) {
	if a.r.OrderKey == "" {
		return 0, nil
	}
	return c.lastPlace(a.r.Upstream, a.r.Tenant, a.r.OrderKey)
}

// lastPlace is the one after all that live under an order key; 1 if none does.
func (c *change) lastPlace(upstream, tenant, key string) (place int64, err error) {
	_, err = c.row(`SELECT coalesce(max(place), 0) + 1 FROM delivery
		WHERE upstream = ? AND tenant = ? AND order_key = ? AND `+inLine,
		[]any{upstream, tenant, key}, &place)
	return place, err
}

func (a *acceptance) insert(c *change, place int64) error {
	now := a.s.wall()
	due := max(now, stored.Milli(a.r.NotBefore))
	d := delivery.Delivery{Request: *a.r, Status: delivery.Queued, Due: stored.At(due), Series: 1, Accepted: stored.At(now), Changed: stored.At(now)}
	if place > 1 {
		d.Status = delivery.Created
	}
	worker, lease, began := a.begin(&d, now)
	seq, err := c.insert(`INSERT INTO delivery(id, tenant, holder, upstream, status, due, not_before, order_key, place, idem_key, fingerprint, correlation, accepted, changed, expires, stops, token_ends,
			attempts, starts, fence, worker, lease, began, callback, tells, told)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, d.Tenant, d.Owner, d.Upstream, string(d.Status), due, stored.Milli(d.NotBefore), orNull(d.OrderKey), place, orNull(d.Key), a.print, d.Correlation, now, now, instant(d.Expires), d.OrderKey != "" && d.Stop, instant(d.TokenEnds),
		d.Attempts, d.Starts, d.Fence, worker, lease, began, d.Callback, d.Tells, told(&d.Request))
	if d.Seq = seq; err == nil {
		body := d.Body
		if body == nil {
			body = []byte{}
		}
		err = c.w.exec("INSERT INTO request(seq, method, path, query, header, body, large) VALUES (?, ?, ?, ?, ?, ?, ?)", d.Seq, d.Method, d.Path, d.Query, a.header, body, d.Large.String())
	}
	if err == nil {
		c.moved(d.Upstream, "", d.Status)
		if d.Status == delivery.Processing {
			c.w.holds(&d, now)
		}
		a.is, a.fresh = d, true
	}
	return err
}

// begin makes the first claim of a delivery, if it is asked for and may be sent now. Its values are those of the row's columns worker, lease and began.
func (a *acceptance) begin(d *delivery.Delivery, now int64) (worker string, lease, began any) {
	if a.begins == nil || !d.MayGo(stored.At(now)) {
		return "", nil, nil
	}
	until := a.s.steady() + a.begins.Lease.Milliseconds()
	d.Status, d.Fence, d.Attempts, d.Starts, d.Lease = delivery.Processing, 1, 1, 1, stored.At(until)
	return a.begins.Owner, until, now
}

// told is the series of which somebody has been told; NULL if nobody is to be.
func told(r *delivery.Request) any {
	if !r.Calls() {
		return nil
	}
	return 0
}

// instant is stored.Milli, or NULL for the zero one.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stored.Milli(t)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
