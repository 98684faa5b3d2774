package postgres

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// inSteps is how many deliveries one transaction of an operator's command changes.
const inSteps = 200

// byHand calls do for up to most deliveries that match a condition, in steps. It returns how many were changed.
func (s *Store) byHand(ctx context.Context, doing, condition string, args []any, most int, do func([]row) ([]changed, error)) (n int, err error) {
	most = max(1, most)
	query := fmt.Sprintf("%s ORDER BY d.seq LIMIT $%d::bigint", condition, len(args)+1)
	for n < most {
		want := min(inSteps, most-n)
		all, err := s.erasable(ctx, query, append(args[:len(args):len(args)], want)...)
		var is []changed
		if err == nil {
			is, err = do(all)
			n += len(is)
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", doing, err)
		}
		if len(is) == 0 || len(all) < want {
			break
		}
	}
	return n, nil
}

// Redrive queues dead letters again.
func (s *Store) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	if err := f.Check(); err != nil {
		return 0, fmt.Errorf("redrive: %w", err)
	}
	if f.Status != "" && f.Status != delivery.Failed {
		return 0, nil
	}
	f.Status = delivery.Failed
	condition, args, err := where(f)
	if err != nil {
		return 0, fmt.Errorf("redrive: %w", err)
	}
	if !f.TokenEnded {
		condition += " AND (r.token_ends IS NULL OR r.token_ends > weir_now())"
	}
	return s.byHand(ctx, "redrive", condition, args, most, func(all []row) ([]changed, error) { return s.redrive(ctx, all) })
}

// redrive begins a new series as described by delivery.Queue. It increments the fence, so that a late end of an earlier
// attempt is not taken for one of this series. A delivery with an order key becomes created, and is promoted if it is
// the first.
func (s *Store) redrive(ctx context.Context, all []row) ([]changed, error) {
	return s.change(ctx, all, func(seqs []int64) step {
		return step{query: `WITH locked AS MATERIALIZED (
				SELECT seq, line, place, stops FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'failed' ORDER BY seq FOR UPDATE SKIP LOCKED
			), placed AS MATERIALIZED (
				SELECT l.seq, r.token_ends, CASE WHEN l.line IS NULL OR l.stops THEN l.place ELSE row_number() OVER (PARTITION BY l.line ORDER BY l.seq)
					+ coalesce((SELECT max(place) FROM weir_delivery d WHERE d.line = l.line AND ` + inLine + `), 0) END AS place
				FROM locked l JOIN weir_request r ON r.seq = l.seq WHERE r.seq = ANY($1::bigint[])
			), redriven AS (
				UPDATE weir_delivery d SET status = CASE WHEN d.line IS NULL THEN 'queued' ELSE 'created' END, place = p.place, series = d.series + 1, fence = d.fence + 1,
					attempts = 0, stalls = 0, due = greatest(d.not_before, weir_now()), changed = weir_now(), reason = '', detail = '', home = $2::bigint,
					expires = CASE WHEN d.expires > weir_now() THEN d.expires WHEN p.token_ends > weir_now() THEN p.token_ends END
				FROM placed p WHERE d.seq = p.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'failed' RETURNING d.seq, d.upstream, d.status
			), counted AS (
				INSERT INTO weir_count(upstream, status, n)
				SELECT upstream, 'failed', -count(*) FROM redriven GROUP BY upstream UNION ALL SELECT upstream, status, count(*) FROM redriven GROUP BY upstream, status
			)
			SELECT seq, upstream, status FROM redriven`, args: []any{seqs, s.home}}
	})
}

// Drop makes dead letters of waiting deliveries, or deletes dead letters.
func (s *Store) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	condition, args, err := where(f)
	if err == nil && f.All() {
		err = &delivery.FieldError{Field: "filter", Reason: "is empty: select the deliveries to drop"}
	}
	if err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	if f.Status == delivery.Failed {
		return s.byHand(ctx, "drop", condition, args, most, func(all []row) ([]changed, error) { return s.erase(ctx, all, delivery.Failed, 0) })
	}
	return s.byHand(ctx, "drop", condition+" AND d."+waiting, args, most, func(all []row) ([]changed, error) {
		return s.kill(ctx, all, delivery.Dropped, nil, "dropped by an operator")
	})
}

// Abandon makes dead letters of the waiting deliveries of a removed upstream.
func (s *Store) Abandon(ctx context.Context, upstream string) (int, error) {
	return s.byHand(ctx, "abandon", "d.upstream = $1::text AND d."+waiting, []any{esc(upstream)}, mostSwept, func(all []row) ([]changed, error) {
		return s.kill(ctx, all, delivery.Gone, nil, "the configuration has no upstream "+upstream+" any more")
	})
}
