package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
)

// returned lists the columns of a record for a RETURNING clause.
var returned = strings.ReplaceAll(columns, "d.", "")

// A choice is a query for the seqs of deliveries that match a filter.
type choice struct {
	query string
	args  []any
}

func choose(f delivery.Filter, more string, most int, with ...any) (choice, error) {
	condition, args, err := where(f)
	return choice{"SELECT d.seq FROM delivery d WHERE " + condition + more + " ORDER BY d.seq LIMIT ?", append(append(args, with...), max(1, most))}, err
}

func (c *change) chosen(by choice) ([]int64, error) { return c.seqs(by.query, by.args...) }

// Redrive queues dead letters again.
func (s *Store) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	if err := f.Check(); err != nil {
		return 0, fmt.Errorf("redrive: %w", err)
	}
	if f.Status != "" && f.Status != delivery.Failed {
		return 0, nil
	}
	f.Status = delivery.Failed
	more, args := "", []any(nil)
	if !f.TokenEnded {
		more, args = " AND (d.token_ends IS NULL OR d.token_ends > ?)", []any{s.wall()}
	}
	by, err := choose(f, more, most, args...)
	if err != nil {
		return 0, fmt.Errorf("redrive: %w", err)
	}
	n, failed := 0, []error(nil)
	err = s.write.have(ctx, begins, func(c *change) error {
		seqs, err := c.chosen(by)
		if err != nil {
			return err
		}
		n, err = c.each(seqs, func(c *change, seq int64) error { return c.redrive(seq, s.wall()) })
		failed = c.failed
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("redrive: %w", err)
	case len(failed) > 0:
		return n, fmt.Errorf("redrive: %w", errors.Join(failed...))
	}
	return n, nil
}

// redrive begins a new series as described by delivery.Queue. It increments the fence, so that a late end of an earlier
// attempt is not taken for one of this series.
func (c *change) redrive(seq, now int64) error {
	var upstream, tenant string
	var key sql.NullString
	var place int64
	var stops bool
	ok, err := c.row("SELECT upstream, tenant, order_key, place, stops FROM delivery WHERE seq = ? AND status = 'failed'", []any{seq}, &upstream, &tenant, &key, &place, &stops)
	if err != nil || !ok {
		return err
	}
	to := delivery.Queued
	switch {
	case stops:
		to = delivery.Created // promoted below if it is the first
	case key.Valid:
		if place, err = c.lastPlace(upstream, tenant, key.String); err != nil {
			return err
		}
		if place > 1 {
			to = delivery.Created
		}
	}
	c.moved(upstream, delivery.Failed, to)
	err = c.w.exec(`UPDATE delivery SET status = ?, place = ?, series = series + 1, fence = fence + 1, attempts = 0, stalls = 0, due = max(not_before, ?), changed = ?, reason = '', detail = '',
			expires = CASE WHEN expires > ? THEN expires WHEN token_ends > ? THEN token_ends END
		WHERE seq = ? AND status = 'failed'`, string(to), place, now, now, now, now, seq)
	if err != nil || !stops {
		return err
	}
	return c.promote(upstream, tenant, key, now)
}

// waiting selects deliveries that are created or queued, by the words of their index.
const waiting = " AND d.status IN ('created', 'queued')"

// Drop makes dead letters of waiting deliveries, or deletes dead letters.
func (s *Store) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	more := waiting
	if f.Status == delivery.Failed {
		more = ""
	}
	by, err := choose(f, more, most)
	if err == nil && f.All() {
		err = &delivery.FieldError{Field: "filter", Reason: "is empty: select the deliveries to drop"}
	}
	if err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	n := 0
	err = s.write.have(ctx, begins, func(c *change) error {
		seqs, err := c.chosen(by)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			if f.Status == delivery.Failed {
				err = c.erase(seq, s.wall(), s.keepKeys())
			} else {
				_, err = c.kill(seq, delivery.Dropped, nil, "dropped by an operator", s.wall())
			}
			if err != nil {
				return err
			}
		}
		n = len(seqs)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	return n, nil
}

// Abandon makes dead letters of the waiting deliveries of a removed upstream.
func (s *Store) Abandon(ctx context.Context, upstream string) (int, error) {
	by, err := choose(delivery.Filter{Upstream: upstream}, waiting, mostSwept)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.write.have(ctx, begins, func(c *change) error {
		seqs, err := c.chosen(by)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			if _, err := c.kill(seq, delivery.Gone, nil, "the configuration has no upstream "+upstream+" any more", s.wall()); err != nil {
				return err
			}
		}
		n = len(seqs)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("abandon: %w", err)
	}
	return n, nil
}
