package dynamosqs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

var _ delivery.Answers = (*Store)(nil)

// An answerItem is the item of a direct call under an idempotency key.
type answerItem struct {
	Print          []byte
	Call           octets
	Until, Expires int64
	Taken          bool `json:",omitempty"`
	Status         int  `json:",omitempty"`
	Header         octets
	Large          bool `json:",omitempty"`
	body           []byte
	version        string
}

func answerKey(k *delivery.Keyed) string { return hashed("W", k.Upstream, k.Tenant, k.Key) }

func (a *answerItem) item(name string) (item, error) {
	b, err := json.Marshal(a)
	it := key(name, 0)
	it["r"], it["v"], it["ttl"] = str(string(b)), str(a.version), num(a.Expires/1000+1)
	if len(a.body) > 0 {
		it["body"] = raw(a.body)
	}
	return it, err
}

// answer reads the item of a key. It returns nil if there is none or it has expired. was is its version even if it has
// expired.
func (s *Store) answer(ctx context.Context, name string) (is *answerItem, was string, err error) {
	it, err := s.item(ctx, name, 0)
	if err != nil || it == nil {
		return nil, "", err
	}
	a := answerItem{version: text(it, "v"), body: bytesOf(it, "body")}
	if err = json.Unmarshal([]byte(text(it, "r")), &a); err != nil || a.Expires <= now() {
		return nil, a.version, err
	}
	return &a, a.version, nil
}

// putAnswer replaces the version over of an item, or creates the item if over is empty.
func (s *Store) putAnswer(ctx context.Context, name, over string, a *answerItem) (bool, error) {
	a.version = nonce()
	it, err := a.item(name)
	if err != nil {
		return false, err
	}
	if over == "" {
		return s.put(ctx, it, "attribute_not_exists(k)", nil)
	}
	return s.put(ctx, it, "v = :v", item{":v": str(over)})
}

// Begin takes a key for a call.
func (s *Store) Begin(ctx context.Context, k *delivery.Keyed) (delivery.Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	for range 5 {
		found, known, err := s.begin(ctx, k)
		if known || err != nil {
			if err != nil && !errors.Is(err, delivery.ErrKeyReused) {
				err = s.explain("begin a call under a key", err)
			}
			return found, err
		}
	}
	return delivery.Kept{}, errors.New("begin a call under a key: other calls with the key keep changing the record")
}

// begin takes the key if it is free or if the call that holds it did not end in time. Otherwise it returns the state of
// the key. known is false if the item changed meanwhile.
func (s *Store) begin(ctx context.Context, k *delivery.Keyed) (found delivery.Kept, known bool, err error) {
	is, over, err := s.answer(ctx, answerKey(k))
	if err != nil {
		return found, false, err
	}
	next := answerItem{Print: k.Print, Call: octets(k.Call), Until: stored.Milli(k.Until), Expires: now() + s.keepKeys()}
	switch {
	case is == nil:
		known, err = s.putAnswer(ctx, answerKey(k), over, &next)
		return delivery.Kept{State: delivery.FirstCall}, known, err
	case !bytes.Equal(is.Print, k.Print):
		return found, true, delivery.ErrKeyReused
	case is.Status != 0:
		a := &delivery.KeptAnswer{Status: is.Status, Body: is.body, Large: is.Large}
		a.Header, err = stored.ReadHeader(string(is.Header))
		return delivery.Kept{State: delivery.Answered, Answer: a}, true, err
	case string(is.Call) == k.Call: // an earlier Begin of this call, whose response was lost
		found.State = delivery.FirstCall
		if is.Taken {
			found.State = delivery.Unknown
		}
		return found, true, nil
	case is.Until > now():
		return delivery.Kept{State: delivery.UnderWay, Until: stored.At(is.Until)}, true, nil
	}
	next.Taken, next.Expires = true, is.Expires
	known, err = s.putAnswer(ctx, answerKey(k), over, &next)
	return delivery.Kept{State: delivery.Unknown}, known, err
}

// Finish records how a call ended.
func (s *Store) Finish(ctx context.Context, k *delivery.Keyed, how delivery.Finish, a *delivery.KeptAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	is, over, err := s.answer(ctx, answerKey(k))
	if err != nil || is == nil || string(is.Call) != k.Call || is.Status != 0 {
		return s.explain("end a call under a key", err)
	}
	switch how {
	case delivery.NotMade:
		_, err = s.remove(ctx, answerKey(k), 0, "v = :v", item{":v": str(over)})
		return s.explain("end a call under a key", err)
	case delivery.KeepFirst:
		header, err := stored.WriteHeader(a.Header)
		if err != nil {
			return err
		}
		is.Status, is.Header, is.body, is.Large = a.Status, octets(header), a.Body, a.Large
	default:
		is.Until = 1
	}
	_, err = s.putAnswer(ctx, answerKey(k), over, is)
	return s.explain("end a call under a key", err)
}
