package postgres

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// prune deletes deliveries, responses and keys after their retention.
func (s *Store) prune(ctx context.Context, w *delivery.Swept) error {
	for _, of := range [...]struct {
		status delivery.Status
		keep   time.Duration
	}{{delivery.Completed, s.o.Keep}, {delivery.Failed, s.o.KeepDead}} {
		all, err := s.erasable(ctx, "d.status = '"+string(of.status)+"' AND d.changed <= weir_now() - $1::bigint AND coalesce(d.told >= d.series, true) ORDER BY d.changed LIMIT $2::bigint", of.keep.Milliseconds(), mostSwept)
		if err != nil {
			return err
		}
		is, err := s.erase(ctx, all, of.status, of.keep)
		w.Pruned += len(is)
		w.More = w.More || len(is) > 0 && len(all) == mostSwept
		if err != nil {
			return err
		}
	}
	return again(func() error {
		return s.transact(ctx,
			step{query: "DELETE FROM weir_answer WHERE ctid = ANY(ARRAY(SELECT ctid FROM weir_answer WHERE expires <= weir_now() ORDER BY expires LIMIT $1::bigint FOR UPDATE SKIP LOCKED))", args: []any{mostSwept}},
			step{query: "DELETE FROM weir_past WHERE ctid = ANY(ARRAY(SELECT ctid FROM weir_past WHERE until <= weir_now() ORDER BY until LIMIT $1::bigint FOR UPDATE SKIP LOCKED))", args: []any{mostSwept}})
	})
}

// erasable returns deliveries that match a condition, with the locks of their idempotency keys.
func (s *Store) erasable(ctx context.Context, condition string, args ...any) (all []row, err error) {
	err = s.look(ctx, step{query: "SELECT d.seq, d.line, r.upstream, r.tenant, coalesce(r.idem_key, '') FROM weir_delivery d JOIN weir_request r ON r.seq = d.seq WHERE " + condition, args: args,
		row: func(rows values) error {
			var r row
			var upstream, tenant, key string
			err := rows.scan(&r.seq, &r.line, &upstream, &tenant, &key)
			if key != "" {
				r.locks = []int64{lockOf(unesc(upstream), unesc(tenant), unesc(key))}
			}
			all = append(all, r)
			return err
		}})
	return all, err
}

// keepKeys returns how long, in milliseconds, an idempotency key is kept after its request was accepted.
func (s *Store) keepKeys() int64 { return max(s.o.Keep, s.o.KeepDead).Milliseconds() }

// erase deletes deliveries that have had a final status for at least the duration over, and keeps their idempotency
// keys until these expire too.
func (s *Store) erase(ctx context.Context, all []row, status delivery.Status, over time.Duration) ([]changed, error) {
	return s.change(ctx, all, func(seqs []int64) step {
		return step{query: `WITH locked AS MATERIALIZED (
				SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = $4::text AND changed <= weir_now() - $2::bigint
				ORDER BY seq FOR UPDATE SKIP LOCKED
			), past AS (
				INSERT INTO weir_past(upstream, tenant, idem_key, id, fingerprint, status, reason, detail, attempts, accepted, changed, until)
				SELECT r.upstream, r.tenant, r.idem_key, r.id, r.fingerprint, d.status, d.reason, d.detail, d.attempts, r.accepted, d.changed, r.accepted + $3::bigint
				FROM locked l JOIN weir_delivery d ON d.seq = l.seq JOIN weir_request r ON r.seq = l.seq
				WHERE d.seq = ANY($1::bigint[]) AND r.seq = ANY($1::bigint[]) AND r.idem_key IS NOT NULL AND r.accepted + $3::bigint > weir_now()
				ON CONFLICT (upstream, tenant, idem_key) DO UPDATE SET id = excluded.id, fingerprint = excluded.fingerprint, status = excluded.status, reason = excluded.reason,
					detail = excluded.detail, attempts = excluded.attempts, accepted = excluded.accepted, changed = excluded.changed, until = excluded.until
			), erased AS (
				DELETE FROM weir_delivery d USING locked l WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) RETURNING d.seq, d.upstream, d.status
			), request AS (
				DELETE FROM weir_request r USING locked l WHERE r.seq = l.seq AND r.seq = ANY($1::bigint[]) RETURNING tenant, ` + sizeOf + ` AS size
			), stocked AS (
				INSERT INTO weir_stock(tenant, n, bytes) SELECT tenant, -count(*), -sum(size) FROM request GROUP BY tenant
			), attempt AS (
				DELETE FROM weir_attempt a USING locked l WHERE a.seq = l.seq AND a.seq = ANY($1::bigint[])
			), counted AS (
				INSERT INTO weir_count(upstream, status, n) SELECT upstream, status, -count(*) FROM erased GROUP BY upstream, status
			)
			SELECT seq, upstream, status FROM erased`, args: []any{seqs, over.Milliseconds(), s.keepKeys(), string(status)}}
	})
}
