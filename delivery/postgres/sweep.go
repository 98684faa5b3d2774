package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// mostSwept limits how many rows one transaction of a sweep changes.
const mostSwept = 200

// Sweep does maintenance. Rows that cannot be changed are left as they are. Then Sweep returns an error with the work
// that was done. Several stores may sweep concurrently, and none repeats the work of another.
func (s *Store) Sweep(ctx context.Context, away map[string]string) (delivery.Swept, error) {
	w := delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}
	var errs []error
	expire := func(ctx context.Context, w *delivery.Swept) error { return s.expire(ctx, w, away) }
	for _, do := range []func(context.Context, *delivery.Swept) error{s.meet, s.reap, expire, s.prune, s.sum} {
		bounded, cancel := context.WithTimeout(ctx, asking)
		err := do(bounded, &w)
		cancel()
		if errs = append(errs, err); err != nil && unreachable(err) {
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return w, fmt.Errorf("sweep: %w", err)
	}
	return w, nil
}

// A row is a delivery to be changed by an operator's command or a sweep.
type row struct {
	seq   int64
	line  *int64
	locks []int64 // in addition to the lock of its line
}

// rows returns the seqs and lines that a query finds.
func (s *Store) rows(ctx context.Context, query string, args ...any) (all []row, err error) {
	err = s.look(ctx, step{query: query, args: args, row: func(rows values) error {
		var r row
		err := rows.scan(&r.seq, &r.line)
		all = append(all, r)
		return err
	}})
	return all, err
}

// A changed is the new state of a changed row.
type changed struct {
	seq      int64
	upstream string
	status   delivery.Status
}

// change takes the locks of rows, changes them in one transaction, and promotes the next deliveries of their order
// keys. If the database refuses, change tries each half separately. A row that cannot be changed is left as it is.
func (s *Store) change(ctx context.Context, all []row, do func(seqs []int64) step) (is []changed, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	var seqs []int64
	locks, lines := make(map[int64]bool), make(map[int64]bool)
	for _, r := range all {
		seqs = append(seqs, r.seq)
		for _, n := range r.locks {
			locks[n] = true
		}
		if r.line != nil {
			locks[*r.line], lines[*r.line] = true, true
		}
	}
	st := do(seqs)
	st.row = func(rows values) error {
		var c changed
		err := rows.scan(&c.seq, &c.upstream, &c.status)
		c.upstream = unesc(c.upstream)
		is = append(is, c)
		return err
	}
	steps := append(locking(locks), st)
	if len(lines) > 0 {
		steps = append(steps, promotes("SELECT line FROM unnest($1::bigint[]) AS l(line)", sorted(lines)))
	}
	err = again(func() error { is = nil; return s.transact(ctx, steps...) })
	switch {
	case err == nil:
		return is, nil
	case unreachable(err), errors.Is(err, delivery.ErrUncertain):
		return nil, err
	case len(all) == 1:
		return nil, fmt.Errorf("delivery %d: %w", all[0].seq, err)
	}
	half := len(all) / 2
	is, err = s.change(ctx, all[:half], do)
	more, other := s.change(ctx, all[half:], do)
	return append(is, more...), errors.Join(err, other)
}

// reap ends claims with an expired lease. The deliveries go back to the queue, or become dead letters after MaxStalls.
// The statement checks the lease again, because it may have been renewed meanwhile.
func (s *Store) reap(ctx context.Context, w *delivery.Swept) error {
	err := s.unclaim(ctx)
	if err != nil {
		return err
	}
	all, err := s.rows(ctx, "SELECT seq, line FROM weir_delivery WHERE lease IS NOT NULL AND lease <= weir_now() ORDER BY lease LIMIT $1::bigint", mostSwept)
	if err != nil {
		return err
	}
	is, err := s.change(ctx, all, func(seqs []int64) step {
		return step{query: `WITH locked AS MATERIALIZED (
				SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'processing' AND lease <= weir_now() ORDER BY seq FOR UPDATE SKIP LOCKED
			), ended AS (
				UPDATE weir_delivery d SET status = CASE WHEN stalls + 1 >= $2::integer THEN 'failed' ELSE 'queued' END,
					reason = CASE WHEN stalls + 1 >= $2::integer THEN 'ended_worker' ELSE '' END,
					detail = CASE WHEN stalls + 1 >= $2::integer THEN 'its attempts repeatedly started and never ended: it may crash the process that sends it' ELSE '' END,
					stalls = stalls + 1, lease = NULL, token = NULL, worker = '', changed = weir_now(), due = weir_now(), home = $3::bigint
				FROM locked l WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'processing' AND d.lease <= weir_now()
				RETURNING d.seq, d.upstream, d.status, d.starts, d.series, d.began
			), attempt AS (
				INSERT INTO weir_attempt(seq, n, series, began, took, status, class, code, answer, counted)
				SELECT seq, starts, series, began, 0, 0, 'unknown', 'its worker stopped', '', true FROM ended
			), counted AS (
				INSERT INTO weir_count(upstream, status, n)
				SELECT upstream, 'processing', -count(*) FROM ended GROUP BY upstream UNION ALL SELECT upstream, status, count(*) FROM ended GROUP BY upstream, status
			)
			SELECT seq, upstream, status FROM ended`, args: []any{seqs, delivery.MaxStalls, s.home}}
	})
	for _, c := range is {
		w.Leaves(c.upstream)
		if w.Reaped++; c.status == delivery.Failed {
			dead(w, c.upstream, delivery.Poison)
		}
	}
	w.More = w.More || len(is) > 0 && len(all) == mostSwept
	return errors.Join(err, s.letters(ctx, w, is))
}

// letters adds the dead letters among changed rows to w.
func (s *Store) letters(ctx context.Context, w *delivery.Swept, is []changed) error {
	var seqs []int64
	for _, c := range is {
		if c.status == delivery.Failed {
			seqs = append(seqs, c.seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	return s.look(ctx, step{
		query: "SELECT d.upstream, r.id, r.correlation, d.attempts, d.reason FROM weir_delivery d JOIN weir_request r ON r.seq = d.seq WHERE d.seq = ANY($1::bigint[])",
		args:  []any{seqs}, row: func(rows values) error {
			var l delivery.Letter
			var why string
			var attempts int64
			err := rows.scan(&l.Upstream, &l.ID, &l.Correlation, &attempts, &why)
			l.Upstream, l.ID, l.Correlation, l.Attempts, l.Reason = unesc(l.Upstream), unesc(l.ID), unesc(l.Correlation), int(attempts), delivery.Reason(why)
			w.Died = append(w.Died, l)
			return err
		},
	})
}

func dead(w *delivery.Swept, upstream string, why delivery.Reason) {
	if w.Dead[upstream] == nil {
		w.Dead[upstream] = make(map[delivery.Reason]int)
	}
	w.Dead[upstream][why]++
}

func (s *Store) expire(ctx context.Context, w *delivery.Swept, away map[string]string) error {
	all, err := s.rows(ctx, "SELECT seq, line FROM weir_delivery WHERE expires IS NOT NULL AND "+waiting+" AND expires <= weir_now() ORDER BY expires LIMIT $1::bigint", mostSwept)
	if err != nil {
		return err
	}
	is, err := s.kill(ctx, all, delivery.Expired, away, "it expired before it could be delivered")
	for _, c := range is {
		dead(w, c.upstream, delivery.Expired)
	}
	w.More = w.More || len(is) > 0 && len(all) == mostSwept
	return errors.Join(err, s.letters(ctx, w, is))
}

// kill makes dead letters of waiting deliveries. If why is Expired, it skips deliveries that have not expired. If an
// upstream is in away, the details begin with that text.
func (s *Store) kill(ctx context.Context, all []row, why delivery.Reason, away map[string]string, detail string) ([]changed, error) {
	upstreams, words := []string{}, []string{}
	for upstream, w := range away {
		upstreams, words = append(upstreams, esc(upstream)), append(words, esc(w))
	}
	return s.change(ctx, all, func(seqs []int64) step {
		return step{query: `WITH locked AS MATERIALIZED (
				SELECT seq, status FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND ` + waiting + ` AND ($2::text <> 'expired' OR expires <= weir_now())
				ORDER BY seq FOR UPDATE SKIP LOCKED
			), killed AS (
				UPDATE weir_delivery d SET status = 'failed', reason = $2::text, detail = coalesce((SELECT a.words FROM unnest($4::text[], $5::text[]) AS a(upstream, words) WHERE a.upstream = d.upstream), '') || $3::text, changed = weir_now(), stops = d.stops AND $2::text <> 'dropped'
				FROM locked l WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.` + waiting + ` RETURNING d.seq, d.upstream, d.status, l.status AS was
			), counted AS (
				INSERT INTO weir_count(upstream, status, n)
				SELECT upstream, was, -count(*) FROM killed GROUP BY upstream, was UNION ALL SELECT upstream, status, count(*) FROM killed GROUP BY upstream, status
			)
			SELECT seq, upstream, status FROM killed`, args: []any{seqs, string(why), esc(detail), upstreams, words}}
	})
}

// mostSummed is the maximum number of differences that are summed in one transaction.
const mostSummed = 20_000

// sum replaces differences of counts and of stock by their sums. It skips rows that another sweep is summing.
func (s *Store) sum(ctx context.Context, _ *delivery.Swept) error {
	return again(func() error {
		return s.transact(ctx, step{query: `WITH taken AS MATERIALIZED (SELECT ctid FROM weir_count LIMIT $1::bigint FOR UPDATE SKIP LOCKED
			), gone AS (
				DELETE FROM weir_count WHERE ctid = ANY(ARRAY(SELECT ctid FROM taken)) RETURNING upstream, status, n
			)
			INSERT INTO weir_count(upstream, status, n) SELECT upstream, status, sum(n) FROM gone GROUP BY upstream, status HAVING sum(n) <> 0`, args: []any{mostSummed}},
			step{query: `WITH taken AS MATERIALIZED (SELECT ctid FROM weir_stock LIMIT $1::bigint FOR UPDATE SKIP LOCKED
			), gone AS (
				DELETE FROM weir_stock WHERE ctid = ANY(ARRAY(SELECT ctid FROM taken)) RETURNING tenant, n, bytes
			)
			INSERT INTO weir_stock(tenant, n, bytes) SELECT tenant, sum(n), sum(bytes) FROM gone GROUP BY tenant HAVING sum(n) <> 0 OR sum(bytes) <> 0`, args: []any{mostSummed}})
	})
}

// meet registers this store and reads how many stores there are.
func (s *Store) meet(ctx context.Context, _ *delivery.Swept) error {
	var f fleet
	err := again(func() error {
		return s.transact(ctx,
			step{query: "INSERT INTO weir_member(home, seen) VALUES ($1::bigint, weir_now()) ON CONFLICT (home) DO UPDATE SET seen = excluded.seen", args: []any{s.home}},
			step{query: "DELETE FROM weir_member WHERE home IN (SELECT home FROM weir_member WHERE seen < weir_now() - 86400000 FOR UPDATE SKIP LOCKED)"},
			step{query: "SELECT count(*), count(*) FILTER (WHERE home < $1::bigint) FROM weir_member WHERE seen > weir_now() - $2::bigint", args: []any{s.home, silent.Milliseconds()},
				row: func(rows values) error { return rows.scan(&f.n, &f.rank) }})
	})
	if err == nil {
		s.mu.Lock()
		f.met, s.among = true, f
		s.mu.Unlock()
	}
	return err
}
