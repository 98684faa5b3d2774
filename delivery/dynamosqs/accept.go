package dynamosqs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// An acceptance is a request that is being stored.
type acceptance struct {
	r     *delivery.Request
	rec   *record
	named bool // the caller made the ID
	took  bool // this request has written the item of the key

	is    delivery.Delivery
	fresh bool
}

// Accept stores a request.
func (s *Store) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	if err := r.CheckForm(); err != nil {
		return delivery.Delivery{}, false, err
	}
	late := r.CheckTimes(time.Now())
	if late != nil && r.Key == "" && r.ID == "" {
		return delivery.Delivery{}, false, late
	}
	kept := *r
	if kept.ID == "" {
		kept.ID = delivery.NewID(time.Now())
	}
	header, err := stored.WriteHeader(kept.Header)
	if err != nil {
		return delivery.Delivery{}, false, err
	}
	a := &acceptance{r: &kept, rec: s.newRecord(&kept, header), named: r.ID != ""}
	bounded, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	w := s.work()
	if late != nil {
		err = s.acceptLate(bounded, a, late)
	} else {
		err = s.accept(bounded, w, a)
	}
	if w.owe(); err == nil {
		s.pay(context.WithoutCancel(ctx))
	}
	if err != nil {
		return delivery.Delivery{Request: kept}, false, s.explain("accept", err)
	}
	return a.is, a.fresh, nil
}

func (s *Store) newRecord(r *delivery.Request, header string) *record {
	is := &record{
		Tenant: octets(r.Tenant), Owner: octets(r.Owner), Upstream: octets(r.Upstream), Method: octets(r.Method), Path: octets(r.Path), Query: octets(r.Query),
		Header: octets(header), Key: octets(r.Key), OrderKey: octets(r.OrderKey), Correlation: octets(r.Correlation), Callback: octets(r.Callback), Tells: octets(r.Tells), Beside: octets(r.Large.String()), Stop: r.Stop, Stops: r.Stop && r.OrderKey != "",
		NotBefore: stored.Milli(r.NotBefore), Expires: stored.Milli(r.Expires), TokenEnds: stored.Milli(r.TokenEnds),
		Print: r.Fingerprint(), Series: 1, Home: s.home, body: r.Body, Large: len(r.Body) > large, Size: stored.SizeOf(r, header),
	}
	is.named(r.ID)
	return is
}

func (r *record) named(id string) { r.ID, r.seq = octets(id), seqOf(id) }

func (s *Store) accept(ctx context.Context, w *work, a *acceptance) error {
	if err := s.know(ctx, a.r.Upstream); err != nil {
		return err
	}
	counts := stored.Stock{N: 1, Bytes: a.rec.Size}
	if err := s.reserve(ctx, a.r.Tenant, counts); errors.Is(err, stored.ErrBound) && (a.r.Key != "" || a.named) {
		return s.acceptLate(ctx, a, err)
	} else if err != nil {
		return err
	}
	defer func() {
		if !a.fresh {
			s.usage.change(a.r.Tenant, stored.Stock{}.Minus(counts))
		}
	}()
	for range 5 {
		if a.r.Key != "" {
			if over, err := s.takeKey(ctx, a); over || err != nil {
				return err
			}
		}
		if over, err := s.store(ctx, w, a); over || err != nil {
			return err
		}
	}
	return errors.New("other requests with the same key keep changing the record")
}

// A keyItem is the item of an idempotency key. It names a delivery and, after that was deleted, contains its result.
type keyItem struct {
	ID              octets
	Print           []byte
	Until, Accepted int64
	Past            *past `json:",omitempty"`
}

type past struct {
	Status            delivery.Status
	Reason            delivery.Reason
	Detail            octets
	Attempts          int
	Accepted, Changed int64
}

func (a *acceptance) key() string { return hashed("K", a.r.Upstream, a.r.Tenant, a.r.Key) }

func (k *keyItem) item(name string) (item, error) {
	b, err := json.Marshal(k)
	it := key(name, 0)
	it["r"], it["id"] = str(string(b)), raw([]byte(k.ID))
	if k.Past != nil {
		it["ttl"] = num(k.Until/1000 + 1)
	}
	return it, err
}

// takeKey makes the key name this request's delivery if it names none yet. Otherwise the key determines the delivery:
// it exists, or this call stores it now, because the process that took the key may have ended before it did so.
func (s *Store) takeKey(ctx context.Context, a *acceptance) (over bool, err error) {
	k := keyItem{ID: a.rec.ID, Print: a.rec.Print, Accepted: now()}
	k.Until = k.Accepted + s.keepKeys()
	mine, err := k.item(a.key())
	if err != nil {
		return false, err
	}
	if a.took, err = s.put(ctx, mine, "attribute_not_exists(k)", nil); a.took || err != nil {
		return false, err
	}
	is, there, err := s.named(ctx, a)
	if err != nil || is == nil {
		return false, err
	}
	if there.isNamed(is, a.rec) {
		return true, s.found(ctx, a, there)
	}
	if there == nil && is.Until > now() {
		return a.meant(is)
	}
	a.took, err = s.put(ctx, mine, "id = :id", item{":id": raw([]byte(is.ID))})
	return false, err
}

// named reads the item of a request's key, or nil, and the record of the delivery that it names, or nil.
func (s *Store) named(ctx context.Context, a *acceptance) (is *keyItem, there *record, err error) {
	it, err := s.item(ctx, a.key(), 0)
	if err != nil || it == nil {
		return nil, nil, err
	}
	is = new(keyItem)
	if err = json.Unmarshal([]byte(text(it, "r")), is); err != nil {
		return nil, nil, err
	}
	there, err = s.get(ctx, seqOf(string(is.ID)))
	return is, there, err
}

// acceptLate finds an earlier delivery of the request. It stores neither a record nor an item for the key.
func (s *Store) acceptLate(ctx context.Context, a *acceptance, late error) error {
	if a.r.Key != "" {
		is, there, err := s.named(ctx, a)
		switch {
		case err != nil:
			return err
		case is != nil && there.isNamed(is, a.rec):
			return s.found(ctx, a, there)
		case is != nil && there == nil && is.Until > now() && (is.Past != nil || !bytes.Equal(is.Print, a.rec.Print)):
			_, err = a.meant(is)
			return err
		}
	}
	if a.named {
		there, err := s.get(ctx, a.rec.seq)
		switch {
		case err != nil:
			return err
		case there != nil && there.ID == a.rec.ID:
			return s.found(ctx, a, there)
		}
	}
	return late
}

// isNamed reports whether the record exists and is the one that the key item names, with the same key, tenant and
// upstream as another record.
func (r *record) isNamed(by *keyItem, as *record) bool {
	return r != nil && r.ID == by.ID && r.Key == as.Key && r.Tenant == as.Tenant && r.Upstream == as.Upstream
}

// meant handles a key that names a delivery without a record. Either the delivery was deleted and the item contains its
// result, or it must now be stored under the ID in the item.
func (a *acceptance) meant(is *keyItem) (over bool, err error) {
	switch p := is.Past; {
	case !bytes.Equal(is.Print, a.rec.Print):
		return true, delivery.ErrKeyReused
	case p == nil && a.r.Large.Name != "" && is.ID != a.rec.ID:
		return true, &delivery.MeantError{ID: string(is.ID)}
	case p == nil:
		if a.named && is.ID != a.rec.ID {
			a.named = false
		}
		a.rec.named(string(is.ID))
		a.r.ID = string(is.ID)
		return false, nil
	default:
		a.is = delivery.Delivery{Request: *a.r, Series: 1, Status: p.Status, Reason: p.Reason, Detail: string(p.Detail), Attempts: p.Attempts,
			Accepted: stored.At(p.Accepted), Changed: stored.At(p.Changed)}
		a.is.ID = string(is.ID)
		return true, nil
	}
}

// found returns the existing delivery if the request is the same.
func (s *Store) found(ctx context.Context, a *acceptance, there *record) error {
	if there.Tenant != a.rec.Tenant || there.Key != a.rec.Key || !bytes.Equal(there.Print, a.rec.Print) {
		if a.took { // the key names a delivery of another request
			_, _ = s.remove(ctx, a.key(), 0, "id = :id", item{":id": raw([]byte(a.rec.ID))})
		}
		return delivery.ErrKeyReused
	}
	err := s.whole(ctx, there)
	if err == nil {
		a.is, err = there.delivery()
	}
	return err
}

// store stores the record unless its ID exists.
func (s *Store) store(ctx context.Context, w *work, a *acceptance) (over bool, err error) {
	r := a.rec
	if r.Large {
		if err = s.keepBody(ctx, r); err != nil {
			return false, err
		}
	}
	r.Accepted, r.Order, r.version = now(), s.nextOrder(), nonce()
	r.Changed, r.Due, r.Follow = r.Accepted, max(r.Accepted, r.NotBefore), 0
	if r.line() == "" {
		r.Status = delivery.Queued
		r.nudges()
	} else {
		r.Status, r.Follow = delivery.Created, r.Accepted+following
		if r.Place, err = s.lastPlace(ctx, r.line()); err != nil {
			return false, err
		}
	}
	it, err := r.item(&s.o)
	if err != nil {
		return false, err
	}
	ok, err := s.put(ctx, it, "attribute_not_exists(k)", nil)
	if err != nil {
		return false, err
	}
	if !ok {
		there, err := s.get(ctx, r.seq)
		if err != nil || there == nil { // it was deleted meanwhile
			return false, err
		}
		if there.version != r.version {
			return true, s.found(ctx, a, there)
		}
	}
	a.fresh = true
	w.moved(r, "")
	w.stocks(r, 1)
	return true, s.stands(ctx, w, a)
}

func (s *Store) stands(ctx context.Context, w *work, a *acceptance) (err error) {
	// If a step fails, a sweep does it: the request is accepted once its record is stored.
	r := a.rec
	if r.line() != "" {
		if err := s.follow(ctx, w, r); err == nil {
			if there, err := s.get(ctx, r.seq); err == nil && there != nil {
				there.body, there.Large = r.body, r.Large
				r = there
			}
		}
	} else {
		s.wake(r)
	}
	a.is, err = r.delivery()
	a.is.Header, a.is.Body = a.r.Header, a.r.Body
	return err
}
