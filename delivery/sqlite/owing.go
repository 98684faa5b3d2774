package sqlite

import (
	"context"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// Owing lists deliveries that have ended and whose callback is not stored yet.
func (s *Store) Owing(ctx context.Context, after delivery.Mark, most int) (all []delivery.Delivery, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+columns+" FROM delivery d WHERE "+owes+" AND (d.changed, d.seq) > (?, ?) ORDER BY d.changed, d.seq LIMIT ?",
		stored.Milli(after.Due), after.Seq, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, err
		}
		all = append(all, r.delivery())
	}
	return all, rows.Err()
}

// Told records that the callback of a series is stored or given up.
func (s *Store) Told(ctx context.Context, seq int64, series int) error {
	return s.write.have(ctx, begins, func(c *change) error {
		return c.w.exec("UPDATE delivery SET told = max(told, ?) WHERE seq = ? AND told IS NOT NULL", series, seq)
	})
}
