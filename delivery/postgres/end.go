package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// An ending is the end of one attempt that is being recorded.
type ending struct {
	delivery.End
	kept  bool
	stays bool // it must not be recorded together with accepts
}

// End records how attempts ended.
func (s *Store) End(ctx context.Context, ends ...delivery.End) (lost []delivery.Claim, err error) {
	for _, e := range ends {
		if e, err = stored.Ending(e); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
		is := &ending{End: e}
		if err = s.ends.want(ctx, is); err != nil {
			return lost, fmt.Errorf("record: %w", err)
		}
		if !is.kept {
			lost = append(lost, e.Claim)
		}
	}
	return lost, nil
}

// endAll records ends. If several concern one delivery, they are recorded one after the other.
func (s *Store) endAll(all []*ending) error {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	for len(all) > 0 {
		now, later := all[:0:0], all[:0:0]
		seen := make(map[int64]bool)
		for _, e := range all {
			if seen[e.Seq] {
				later = append(later, e)
				continue
			}
			seen[e.Seq] = true
			now = append(now, e)
		}
		if err := again(func() error { return s.endEach(ctx, now) }); err != nil {
			return err
		}
		all = later
	}
	return nil
}

// endEach records ends of different deliveries.
func (s *Store) endEach(ctx context.Context, all []*ending) error {
	steps := s.endings(all)
	if err := s.transact(ctx, steps...); err != nil {
		return err
	}
	return s.heardOf(ctx, all)
}

func (s *Store) endings(all []*ending) []step {
	if !slices.ContainsFunc(all, func(e *ending) bool { return !e.well() }) {
		return []step{s.complete(all, complete)}
	}
	var seqs, fences, dues, tooks []int64
	var to, reasons, details, classes, codes []string
	var back, sent []bool
	alone := true
	var statuses []int32
	var answers [][]byte
	of := make(map[int64]*ending, len(all))
	for _, e := range all {
		a := e.Attempt
		if a == nil {
			a = &delivery.Attempt{}
		}
		of[e.Seq], e.kept = e, false
		alone = alone && e.Alone
		seqs, fences, dues, tooks = append(seqs, e.Seq), append(fences, e.Fence), append(dues, stored.Milli(e.Due)), append(tooks, a.Took.Milliseconds())
		to, reasons, details = append(to, string(e.To)), append(reasons, string(e.Reason)), append(details, esc(e.Detail))
		back, sent = append(back, e.GiveBack && e.To == delivery.Queued), append(sent, e.Attempt != nil)
		statuses, classes, codes, answers = append(statuses, int32(a.Status)), append(classes, a.Class.String()), append(codes, esc(a.Code)), append(answers, some(a.Answer))
	}
	steps := []step{
		{query: "SELECT pg_advisory_xact_lock(line) FROM (SELECT DISTINCT line FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND line IS NOT NULL ORDER BY line) x", args: []any{seqs}},
		{query: end, args: []any{seqs, fences, to, dues, back, reasons, details, sent, tooks, statuses, classes, codes, answers, s.home}, row: func(rows values) error {
			var seq int64
			err := rows.scan(&seq)
			of[seq].kept = true
			return err
		}},
		promotes("SELECT DISTINCT line FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND line IS NOT NULL AND status IN ('completed', 'failed')", seqs)}
	if alone {
		steps = steps[1:2]
	}
	return steps
}

// heardOf finds ends that were recorded by an earlier call whose response was lost. A lost claim was ended by a sweep,
// which counts a stall, or has been followed by another fence.
func (s *Store) heardOf(ctx context.Context, all []*ending) error {
	var unknown []int64
	of := make(map[int64]*ending)
	for _, e := range all {
		if !e.kept && e.Again {
			unknown = append(unknown, e.Seq)
			of[e.Seq] = e
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return s.transact(ctx, step{query: "SELECT seq, fence FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status <> 'processing' AND stalls = 0", args: []any{unknown},
		row: func(rows values) error {
			var c delivery.Claim
			err := rows.scan(&c.Seq, &c.Fence)
			if e := of[c.Seq]; e != nil && e.Claim == c {
				e.kept = true
			}
			return err
		}})
}

const end = `WITH given AS MATERIALIZED (
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::text[], $8::boolean[], $9::bigint[], $10::integer[], $11::text[], $12::text[], $13::bytea[])
	AS g(seq, fence, status, due, back, reason, detail, sent, took, answered, class, code, answer)
), locked AS MATERIALIZED (
	SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'processing' ORDER BY seq FOR UPDATE
), ended AS (
	UPDATE weir_delivery d SET status = g.status, lease = NULL, token = NULL, worker = '', stalls = 0, changed = weir_now(), due = greatest(weir_now(), g.due),
		attempts = d.attempts - g.back::integer, reason = g.reason, detail = g.detail, home = $14::bigint
	FROM locked l JOIN given g ON g.seq = l.seq
	WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'processing' AND d.fence = g.fence
	RETURNING d.seq, d.upstream, d.status, d.starts, d.series, d.began
), attempt AS (
	INSERT INTO weir_attempt(seq, n, series, began, took, status, class, code, answer, counted)
	SELECT e.seq, e.starts, e.series, e.began, g.took, g.answered, g.class, g.code, g.answer, NOT g.back FROM ended e JOIN given g ON g.seq = e.seq WHERE g.sent
), counted AS (
	INSERT INTO weir_count(upstream, status, n)
	SELECT upstream, 'processing', -count(*) FROM ended GROUP BY upstream UNION ALL SELECT upstream, status, count(*) FROM ended GROUP BY upstream, status
)
SELECT seq FROM ended`

// promotes queues the next delivery of each order key that a query returns, if no delivery of the key is queued or
// processing. The caller holds the locks of the keys.
func promotes(lines string, arg any) step {
	return step{query: `WITH given AS MATERIALIZED (` + lines + `
	), first AS MATERIALIZED (
		SELECT (SELECT seq FROM weir_delivery d WHERE d.line = given.line AND ` + inLine + ` ORDER BY d.line, place LIMIT 1) AS seq FROM given
	), queued AS (
		UPDATE weir_delivery d SET status = 'queued', due = greatest(d.not_before, weir_now()), changed = weir_now() FROM first f
		WHERE d.seq = f.seq AND d.status = 'created' RETURNING d.upstream
	)
	INSERT INTO weir_count(upstream, status, n)
	SELECT upstream, 'created', -count(*) FROM queued GROUP BY upstream UNION ALL SELECT upstream, 'queued', count(*) FROM queued GROUP BY upstream`, args: []any{arg}}
}
