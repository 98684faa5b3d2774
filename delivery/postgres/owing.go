package postgres

import (
	"context"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// Owing lists deliveries that have ended and whose callback is not stored yet.
func (s *Store) Owing(ctx context.Context, after delivery.Mark, most int) (all []delivery.Delivery, err error) {
	err = s.look(ctx, step{query: `WITH owing AS MATERIALIZED (
			SELECT seq FROM weir_delivery d WHERE ` + owes + ` AND (changed, seq) > ($1::bigint, $2::bigint) ORDER BY changed, seq LIMIT $3::bigint
		)
		SELECT ` + recordColumns + ` FROM weir_delivery d JOIN weir_request r ON r.seq = d.seq
		WHERE d.seq = ANY(ARRAY(SELECT seq FROM owing)) AND r.seq = ANY(ARRAY(SELECT seq FROM owing)) ORDER BY d.changed, d.seq`,
		args: []any{stored.Milli(after.Due), after.Seq, max(1, most)},
		row: func(rows values) error {
			var r record
			err := rows.scan(r.fields()...)
			all = append(all, r.delivery())
			return err
		}})
	return all, err
}

// Told records that the callback of a series is stored or given up.
func (s *Store) Told(ctx context.Context, seq int64, series int) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	return again(func() error {
		return s.transact(ctx, step{query: "UPDATE weir_delivery SET told = greatest(told, $2::integer) WHERE seq = $1::bigint AND told IS NOT NULL", args: []any{seq, series}})
	})
}
