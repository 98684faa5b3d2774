package postgres

import (
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// Most requests are plain and most attempts succeed. Groups of only these use simpler statements with the same results
// as the general ones. They index arrays by number, because unnest would create a table for each array.

// plain reports whether a new request can conflict with no other: it has no key, no ID from its caller and no order
// key. It also has no times, callback or large body.
func (a *acceptance) plain() bool {
	r := a.r
	return !a.named && r.Key == "" && r.OrderKey == "" && r.NotBefore.IsZero() && r.Expires.IsZero() && r.TokenEnds.IsZero() &&
		r.Callback == "" && r.Tells == "" && r.Large.Name == ""
}

// plainly stores plain requests that have the same claim, or none.
func (s *Store) plainly(all []*acceptance) step {
	n := len(all)
	texts := make([][]string, 9)
	for i := range texts {
		texts[i] = make([]string, n)
	}
	prints, bodies := make([][]byte, n), make([][]byte, n)
	byID := make(map[string]*acceptance, n)
	for i, a := range all {
		r := a.r
		for j, is := range [...]string{r.ID, r.Tenant, r.Owner, r.Upstream, r.Correlation, r.Method, r.Path, r.Query, a.header} {
			texts[j][i] = esc(is)
		}
		prints[i], bodies[i] = a.print, r.Body
		byID[r.ID] = a
	}
	args := make([]any, 0, 16)
	for _, is := range texts {
		args = append(args, is)
	}
	lease, status := all[0].begins.Lease.Milliseconds(), delivery.Queued
	if lease > 0 {
		status = delivery.Processing
	}
	args = append(args, prints, bodies, lease, esc(all[0].begins.Owner), s.home, s.begun)
	return step{query: insertPlain, args: args, row: func(r values) error {
		var id string
		var seq, accepted int64
		if err := r.scan(&id, &seq, &accepted); err != nil {
			return err
		}
		byID[unesc(id)].stored(seq, status, accepted, accepted)
		return nil
	}}
}

const insertPlain = `WITH request AS (
	INSERT INTO weir_request(id, tenant, holder, upstream, correlation, method, path, query, header, fingerprint, body, order_key, accepted)
	SELECT ($1::text[])[n], ($2::text[])[n], ($3::text[])[n], ($4::text[])[n], ($5::text[])[n], ($6::text[])[n], ($7::text[])[n], ($8::text[])[n], ($9::text[])[n],
		($10::bytea[])[n], ($11::bytea[])[n], '', weir_now()
	FROM generate_subscripts($1::text[], 1) n
	RETURNING seq, id, upstream, accepted, tenant, ` + sizeOf + ` AS size
), stocked AS (
	INSERT INTO weir_stock(tenant, n, bytes) SELECT tenant, count(*), sum(size) FROM request GROUP BY tenant
), delivery AS (
	INSERT INTO weir_delivery(seq, upstream, status, due, not_before, place, stops, home, changed, attempts, starts, fence, token, lease, began, worker)
	SELECT seq, upstream, CASE WHEN begins THEN 'processing' ELSE 'queued' END, accepted, 0, 0, false, $14::bigint, accepted, begins::integer, begins::integer, begins::integer,
		CASE WHEN begins THEN $15::bigint END, CASE WHEN begins THEN accepted + $12::bigint END, CASE WHEN begins THEN accepted END, CASE WHEN begins THEN $13::text ELSE '' END
	FROM (SELECT *, $12::bigint > 0 AS begins FROM request) r
), counted AS (
	INSERT INTO weir_count(upstream, status, n) SELECT upstream, CASE WHEN $12::bigint > 0 THEN 'processing' ELSE 'queued' END, count(*) FROM request GROUP BY upstream
)
SELECT id, seq, accepted FROM request`

// well reports whether an attempt succeeded without complications: it completes a delivery without an order key, reason
// or detail.
func (e *ending) well() bool {
	return e.To == delivery.Completed && e.Alone && e.Due.IsZero() && e.Reason == "" && e.Detail == "" && !e.GiveBack &&
		e.Attempt != nil && e.Attempt.Class == outcome.OK && e.Attempt.Code == ""
}

// complete records ends for which well is true, each of a different delivery.
func (s *Store) complete(all []*ending, query string) step {
	n := len(all)
	seqs, fences, tooks := make([]int64, n), make([]int64, n), make([]int64, n)
	statuses, answers := make([]int32, n), make([][]byte, n)
	of := make(map[int64]*ending, n)
	for i, e := range all {
		of[e.Seq], e.kept = e, false
		seqs[i], fences[i], tooks[i], statuses[i], answers[i] = e.Seq, e.Fence, e.Attempt.Took.Milliseconds(), int32(e.Attempt.Status), e.Attempt.Answer
	}
	return step{query: query, args: []any{seqs, fences, tooks, statuses, answers, s.home}, row: func(rows values) error {
		var seq int64
		err := rows.scan(&seq)
		if err == nil {
			of[seq].kept = true
		}
		return err
	}}
}

const complete = `WITH locked AS MATERIALIZED (
	SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'processing' ORDER BY seq FOR UPDATE
), ended AS (
	UPDATE weir_delivery d SET status = 'completed', lease = NULL, token = NULL, worker = '', stalls = 0, changed = weir_now(), due = weir_now(), reason = '', detail = '', home = $6::bigint
	WHERE d.seq = ANY(ARRAY(SELECT seq FROM locked)) AND d.status = 'processing' AND d.fence = ($2::bigint[])[array_position($1::bigint[], d.seq)]
	RETURNING d.seq, d.upstream, d.starts, d.series, d.began, array_position($1::bigint[], d.seq) AS n
), attempt AS (
	INSERT INTO weir_attempt(seq, n, series, began, took, status, class, code, answer, counted)
	SELECT seq, starts, series, began, ($3::bigint[])[n], ($4::integer[])[n], 'ok', '', ($5::bytea[])[n], true FROM ended
), counted AS (
	INSERT INTO weir_count(upstream, status, n)
	SELECT upstream, 'processing', -count(*) FROM ended GROUP BY upstream UNION ALL SELECT upstream, 'completed', count(*) FROM ended GROUP BY upstream
)
SELECT seq FROM ended`

// completeFree is complete, but skips rows that other transactions have locked.
var completeFree = strings.Replace(complete, "FOR UPDATE\n", "FOR UPDATE SKIP LOCKED\n", 1)
