package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// Claim begins attempts.
func (s *Store) Claim(ctx context.Context, a delivery.Ask) ([]delivery.Delivery, error) {
	if len(a.Only) == 0 {
		a.Most = max(1, a.Most)
	}
	a.Only = slices.Clone(a.Only)
	var all []delivery.Delivery
	err := s.write.have(ctx, begins, func(c *change) error {
		now, lease := s.wall(), s.steady()+a.Lease.Milliseconds()
		seqs := a.Only
		if len(seqs) == 0 {
			var err error
			if seqs, err = c.seqs(`SELECT seq FROM delivery WHERE upstream = ? AND status = 'queued' AND due <= ? AND (expires IS NULL OR expires > ?)
				ORDER BY due, seq LIMIT ?`, a.Upstream, now, now, a.Most); err != nil {
				return err
			}
		}
		claimed := make([]delivery.Delivery, 0, len(seqs))
		for _, seq := range seqs[:min(len(seqs), cmp.Or(a.Most, len(seqs)))] {
			d, ok, err := c.claim(seq, &a, now, lease)
			if err != nil {
				return err
			}
			if ok {
				claimed = append(claimed, d)
			}
		}
		all = claimed
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return all, nil
}

func (c *change) claim(seq int64, a *delivery.Ask, now, lease int64) (delivery.Delivery, bool, error) {
	var r record
	ok, err := c.row(`UPDATE delivery AS d SET status = 'processing', fence = fence + 1, worker = ?, lease = ?, began = ?, changed = ?,
			attempts = attempts + 1, starts = starts + 1
		WHERE seq = ? AND status = 'queued' AND upstream = ? AND due <= ? AND (expires IS NULL OR expires > ?)
		RETURNING `+returned, []any{a.Owner, lease, now, now, seq, a.Upstream, now, now}, r.fields()...)
	if err != nil || !ok {
		return delivery.Delivery{}, false, err
	}
	c.moved(a.Upstream, delivery.Queued, delivery.Processing)
	var q request
	if _, err := c.row("SELECT method, path, query, header, body, large FROM request WHERE seq = ?", []any{seq}, q.fields()...); err != nil {
		return delivery.Delivery{}, false, err
	}
	if bad := q.to(&r.Request); bad != nil {
		_, err := c.end(&delivery.End{Claim: r.Claim(), To: delivery.Failed, Reason: delivery.Rejected, Detail: "it cannot be sent: " + bad.Error()}, now)
		return delivery.Delivery{}, false, err
	}
	d := r.delivery()
	c.w.holds(&d, now)
	return d, true, nil
}

// Defer postpones queued deliveries.
func (s *Store) Defer(ctx context.Context, until time.Time, seqs ...int64) error {
	seqs = slices.Clone(seqs)
	return s.write.have(ctx, begins, func(c *change) error {
		for _, seq := range seqs {
			if err := c.w.exec("UPDATE delivery SET due = max(due, ?) WHERE seq = ? AND status = 'queued'", stored.Milli(until), seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// Renew extends leases.
func (s *Store) Renew(ctx context.Context, lease time.Duration, claims ...delivery.Claim) ([]delivery.Claim, error) {
	claims = slices.Clone(claims)
	var lost []delivery.Claim
	err := s.write.do(ctx, false, func(c *change) error {
		gone := []delivery.Claim(nil)
		until := s.steady() + lease.Milliseconds()
		for _, k := range claims {
			var seq int64
			ok, err := c.row("UPDATE delivery SET lease = ? WHERE seq = ? AND status = 'processing' AND fence = ? RETURNING seq", []any{until, k.Seq, k.Fence}, &seq)
			if err != nil {
				return err
			}
			if !ok {
				gone = append(gone, k)
			}
		}
		lost = gone
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("renew: %w", err)
	}
	return lost, nil
}
