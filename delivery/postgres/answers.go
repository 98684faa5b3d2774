package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

var _ delivery.Answers = (*Store)(nil)

// Begin takes a key for a call.
func (s *Store) Begin(ctx context.Context, k *delivery.Keyed) (delivery.Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	for range 5 {
		if found, known, err := s.begin(ctx, k); known || err != nil {
			if err != nil {
				err = fmt.Errorf("begin a call under a key: %w", err)
			}
			return found, err
		}
	}
	return delivery.Kept{}, errors.New("begin a call under a key: other calls with the key keep changing the record")
}

// begin takes the key if it is free or if the call that holds it did not end in time. Otherwise it returns the state of
// the key. known is false if the row was deleted meanwhile.
func (s *Store) begin(ctx context.Context, k *delivery.Keyed) (found delivery.Kept, known bool, err error) {
	var print, body []byte
	var status int
	var until int64
	var header, call string
	var large, over, taken bool
	key := []any{esc(k.Upstream), esc(k.Tenant), esc(k.Key)}
	err = again(func() error {
		known = false
		return s.transact(ctx,
			step{query: `INSERT INTO weir_answer AS a (upstream, tenant, idem_key, fingerprint, owner, until, taken, status, header, body, large, expires)
				VALUES ($1::text, $2::text, $3::text, $4::bytea, $5::text, $6::bigint, false, 0, '', '', false, weir_now() + $7::bigint)
				ON CONFLICT (upstream, tenant, idem_key) DO UPDATE SET taken = a.expires > weir_now(), expires = CASE WHEN a.expires > weir_now() THEN a.expires ELSE excluded.expires END,
					fingerprint = excluded.fingerprint, owner = excluded.owner, until = excluded.until, status = 0, header = '', body = '', large = false
				WHERE a.expires <= weir_now() OR a.fingerprint = excluded.fingerprint AND a.status = 0 AND a.until <= weir_now() AND a.owner <> excluded.owner`,
				args: append(key, k.Print, esc(k.Call), stored.Milli(k.Until), s.keepKeys())},
			step{query: `SELECT fingerprint, owner, until, until <= weir_now(), taken, status, header, body, large FROM weir_answer WHERE upstream = $1::text AND tenant = $2::text AND idem_key = $3::text`,
				args: key, row: func(rows values) error {
					known = true
					return rows.scan(&print, &call, &until, &over, &taken, &status, &header, &body, &large)
				}})
	})
	switch {
	case err != nil || !known:
	case !bytes.Equal(print, k.Print):
		err = delivery.ErrKeyReused
	case status != 0:
		a := &delivery.KeptAnswer{Status: status, Body: body, Large: large}
		a.Header, err = stored.ReadHeader(unesc(header))
		found = delivery.Kept{State: delivery.Answered, Answer: a}
	case call != esc(k.Call):
		found = delivery.Kept{State: delivery.UnderWay, Until: stored.At(until)}
	case taken:
		found = delivery.Kept{State: delivery.Unknown}
	default:
		found = delivery.Kept{State: delivery.FirstCall}
	}
	return found, known, err
}

// Finish records how a call ended.
func (s *Store) Finish(ctx context.Context, k *delivery.Keyed, how delivery.Finish, a *delivery.KeptAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	const of = " WHERE upstream = $1::text AND tenant = $2::text AND idem_key = $3::text AND owner = $4::text AND status = 0"
	st := step{query: "UPDATE weir_answer SET until = 0" + of, args: []any{esc(k.Upstream), esc(k.Tenant), esc(k.Key), esc(k.Call)}}
	switch how {
	case delivery.NotMade:
		st.query = "DELETE FROM weir_answer" + of
	case delivery.KeepFirst:
		header, err := stored.WriteHeader(a.Header)
		if err != nil {
			return err
		}
		st.query = "UPDATE weir_answer SET status = $5::integer, header = $6::text, body = $7::bytea, large = $8::boolean" + of
		st.args = append(st.args, a.Status, esc(header), some(a.Body), a.Large)
	}
	if err := again(func() error { return s.transact(ctx, st) }); err != nil {
		return fmt.Errorf("end a call under a key: %w", err)
	}
	return nil
}
