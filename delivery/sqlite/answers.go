package sqlite

import (
	"bytes"
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

var _ delivery.Answers = (*Store)(nil)

// Begin takes a key for a call.
func (s *Store) Begin(ctx context.Context, k *delivery.Keyed) (delivery.Kept, error) {
	var found delivery.Kept
	call := *k
	err := s.write.have(ctx, stores, func(c *change) (err error) {
		found, err = s.keyed(c, &call)
		return err
	})
	if err != nil {
		return delivery.Kept{}, fmt.Errorf("begin a call under a key: %w", err)
	}
	return found, nil
}

func (s *Store) keyed(c *change, k *delivery.Keyed) (found delivery.Kept, err error) {
	now := s.wall()
	var print, body []byte
	var owner, header string
	var until int64
	var status int
	var large bool
	ok, err := c.row("SELECT fingerprint, owner, until, status, header, body, large FROM answer WHERE upstream = ? AND tenant = ? AND idem_key = ? AND expires > ?",
		[]any{k.Upstream, k.Tenant, k.Key, now}, &print, &owner, &until, &status, &header, &body, &large)
	switch {
	case err != nil:
		return found, err
	case !ok:
		found.State = delivery.FirstCall
		return found, c.w.exec(`INSERT OR REPLACE INTO answer(upstream, tenant, idem_key, fingerprint, owner, until, status, header, body, large, expires)
			VALUES (?, ?, ?, ?, ?, ?, 0, '', x'', 0, ?)`, k.Upstream, k.Tenant, k.Key, k.Print, k.Call, stored.Milli(k.Until), now+s.keepKeys())
	case !bytes.Equal(print, k.Print):
		return found, delivery.ErrKeyReused
	case status != 0:
		h, err := stored.ReadHeader(header)
		return delivery.Kept{State: delivery.Answered, Answer: &delivery.KeptAnswer{Status: status, Header: h, Body: body, Large: large}}, err
	case until > now:
		return delivery.Kept{State: delivery.UnderWay, Until: stored.At(until)}, nil
	}
	found.State = delivery.Unknown
	return found, c.w.exec("UPDATE answer SET owner = ?, until = ? WHERE upstream = ? AND tenant = ? AND idem_key = ? AND owner = ? AND status = 0",
		k.Call, stored.Milli(k.Until), k.Upstream, k.Tenant, k.Key, owner)
}

// Finish records how a call ended.
func (s *Store) Finish(ctx context.Context, k *delivery.Keyed, how delivery.Finish, a *delivery.KeptAnswer) error {
	const of = " WHERE upstream = ? AND tenant = ? AND idem_key = ? AND owner = ? AND status = 0"
	args := []any{k.Upstream, k.Tenant, k.Key, k.Call}
	query := "UPDATE answer SET until = 0" + of
	switch how {
	case delivery.NotMade:
		query = "DELETE FROM answer" + of
	case delivery.KeepFirst:
		header, err := stored.WriteHeader(a.Header)
		if err != nil {
			return err
		}
		body := bytes.Clone(a.Body)
		if body == nil {
			body = []byte{}
		}
		query, args = "UPDATE answer SET status = ?, header = ?, body = ?, large = ?"+of, append([]any{a.Status, header, body, a.Large}, args...)
	}
	if err := s.write.have(ctx, always, func(c *change) error { return c.w.exec(query, args...) }); err != nil {
		return fmt.Errorf("end a call under a key: %w", err)
	}
	return nil
}
