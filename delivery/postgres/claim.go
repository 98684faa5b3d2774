package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// A claiming is a request to claim deliveries by seq.
type claiming struct {
	ask delivery.Ask
	is  []delivery.Delivery
}

// Claim begins attempts. Concurrent claims by seq are sent to the database together.
func (s *Store) Claim(ctx context.Context, a delivery.Ask) (all []delivery.Delivery, err error) {
	if len(a.Only) == 0 {
		return s.claimDue(ctx, a)
	}
	if a.Only = slices.Clone(a.Only); a.Most > 0 {
		a.Only = a.Only[:min(len(a.Only), a.Most)]
	}
	c := &claiming{ask: a}
	if err = s.claims.want(ctx, c); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return c.is, nil
}

// claimDue claims the deliveries that are due first. If other stores claim every one meanwhile, it tries again.
func (s *Store) claimDue(ctx context.Context, a delivery.Ask) (all []delivery.Delivery, err error) {
	for range 3 {
		if a.Only, err = s.longestDue(ctx, &a); err != nil || len(a.Only) == 0 {
			return nil, err
		}
		if all, err = s.Claim(ctx, a); err != nil || len(all) > 0 {
			break
		}
	}
	return all, err
}

func (s *Store) longestDue(ctx context.Context, a *delivery.Ask) (seqs []int64, err error) {
	err = s.look(ctx, step{query: `SELECT seq FROM weir_delivery WHERE upstream = $1::text AND status = 'queued' AND due <= weir_now() AND (expires IS NULL OR expires > weir_now())
		ORDER BY due, seq LIMIT $2::bigint`, args: []any{esc(a.Upstream), cmp.Or(max(0, a.Most), 1)},
		row: numbers(&seqs)})
	return seqs, err
}

// numbers returns a function that reads rows of one number each.
func numbers(to *[]int64) func(values) error {
	return func(rows values) error {
		var n int64
		err := rows.scan(&n)
		*to = append(*to, n)
		return err
	}
}

// claimAll runs several claims. If two name the same seq, the first one gets it.
func (s *Store) claimAll(all []*claiming) error {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	of := make(map[int64]*claiming)
	var seqs, leases []int64
	var upstreams, owners []string
	for _, c := range all {
		for _, seq := range c.ask.Only {
			if of[seq] == nil {
				of[seq] = c
				seqs, leases = append(seqs, seq), append(leases, c.ask.Lease.Milliseconds())
				upstreams, owners = append(upstreams, esc(c.ask.Upstream)), append(owners, esc(c.ask.Owner))
			}
		}
	}
	var bad []delivery.End
	token := rand.Int64()
	err := again(func() error {
		bad = nil
		for _, c := range all {
			c.is = nil
		}
		return s.transact(ctx, step{query: claim, args: []any{seqs, upstreams, leases, owners, token, s.home}, row: func(rows values) error {
			d, why, err := whole(rows)
			switch {
			case err != nil:
			case why != nil:
				bad = append(bad, delivery.End{Claim: d.Claim(), To: delivery.Failed, Reason: delivery.Rejected, Detail: "it cannot be sent: " + why.Error()})
			default:
				of[d.Seq].is = append(of[d.Seq].is, d)
			}
			return err
		}})
	})
	if errors.Is(err, delivery.ErrUncertain) {
		s.unclaimLater(token, seqs)
	}
	if err == nil && len(bad) > 0 {
		_, err = s.End(ctx, bad...)
	}
	for _, c := range all {
		slices.SortFunc(c.is, func(a, b delivery.Delivery) int {
			return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
		})
	}
	return err
}

// claim claims due rows by seq. It skips a locked row, which another transaction is claiming or changing.
const claim = `WITH given AS MATERIALIZED (
	SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[]) AS g(seq, upstream, lease, worker)
), locked AS MATERIALIZED (
	SELECT d.seq FROM weir_delivery d JOIN given g ON g.seq = d.seq
	WHERE d.seq = ANY($1::bigint[]) AND d.status = 'queued' AND d.upstream = g.upstream AND d.due <= weir_now() AND (d.expires IS NULL OR d.expires > weir_now())
	ORDER BY d.seq FOR UPDATE OF d SKIP LOCKED
), claimed AS (
	UPDATE weir_delivery d SET status = 'processing', fence = d.fence + 1, worker = g.worker, token = $5::bigint, home = $6::bigint,
		lease = weir_now() + g.lease, began = weir_now(), changed = weir_now(), attempts = d.attempts + 1, starts = d.starts + 1
	FROM locked l JOIN given g ON g.seq = l.seq
	WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'queued' RETURNING d.*
), counted AS (
	INSERT INTO weir_count(upstream, status, n) SELECT upstream, status, n FROM (
		SELECT upstream, 'queued' AS status, -count(*) AS n FROM claimed GROUP BY upstream
		UNION ALL SELECT upstream, 'processing', count(*) FROM claimed GROUP BY upstream) c
)
SELECT ` + recordColumns + requestColumns + ` FROM claimed d JOIN weir_request r ON r.seq = d.seq AND r.seq = ANY($1::bigint[])`

// unclaimLater makes the next sweep give back a claim whose outcome is unknown.
func (s *Store) unclaimLater(token int64, seqs []int64) {
	s.addUnsure(unsureClaim{token: token, seqs: seqs})
}

// mostUnsure limits the claims to be given back. Beyond it, claims end with their leases.
const mostUnsure = 1000

type unsureClaim struct {
	token int64
	seqs  []int64
	ids   []string // used if the seqs are unknown, because the claim was made with the insert
}

// unbeginLater is unclaimLater for deliveries that were claimed when they were stored.
func (s *Store) unbeginLater(all []*acceptance) {
	is := unsureClaim{token: s.begun}
	for _, a := range all {
		if a.begins.Lease > 0 {
			is.ids = append(is.ids, esc(a.r.ID))
		}
	}
	if len(is.ids) > 0 {
		s.addUnsure(is)
	}
}

// unclaim gives back claims whose callers did not learn of them. No attempt was sent, so none counts.
func (s *Store) unclaim(ctx context.Context) error {
	for {
		c, ok := s.nextUnsure()
		if !ok {
			return nil
		}
		if err := again(func() error {
			return s.transact(ctx, step{query: `WITH back AS (
				UPDATE weir_delivery SET status = 'queued', lease = NULL, token = NULL, worker = '', attempts = attempts - 1, starts = starts - 1, changed = weir_now()
				WHERE seq = ANY($1::bigint[] || ARRAY(SELECT seq FROM weir_request WHERE id = ANY($3::text[]))) AND status = 'processing' AND token = $2::bigint RETURNING upstream)
			INSERT INTO weir_count(upstream, status, n) SELECT upstream, 'queued', count(*) FROM back GROUP BY upstream
				UNION ALL SELECT upstream, 'processing', -count(*) FROM back GROUP BY upstream`, args: []any{c.seqs, c.token, c.ids}})
		}); err != nil {
			s.addUnsure(c)
			return err
		}
	}
}

// nextUnsure removes a claim from those to be given back, so that no other sweep gives it back, too.
func (s *Store) nextUnsure() (c unsureClaim, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsure) == 0 {
		return c, false
	}
	c, s.unsure = s.unsure[0], s.unsure[1:]
	return c, true
}

func (s *Store) addUnsure(c unsureClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsure) < mostUnsure {
		s.unsure = append(s.unsure, c)
	}
}

// Defer postpones queued deliveries.
func (s *Store) Defer(ctx context.Context, until time.Time, seqs ...int64) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	return again(func() error {
		return s.transact(ctx, step{query: `WITH locked AS MATERIALIZED (SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'queued' ORDER BY seq FOR UPDATE SKIP LOCKED)
			UPDATE weir_delivery d SET due = greatest(d.due, $2::bigint) FROM locked l WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'queued'`,
			args: []any{seqs, stored.Milli(until)}})
	})
}

// Renew extends leases.
func (s *Store) Renew(ctx context.Context, lease time.Duration, claims ...delivery.Claim) ([]delivery.Claim, error) {
	var seqs, fences []int64
	for _, c := range claims {
		seqs, fences = append(seqs, c.Seq), append(fences, c.Fence)
	}
	held := make(map[delivery.Claim]bool)
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	err := again(func() error {
		return s.transact(ctx, step{query: `WITH given AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS g(seq, fence)
			), locked AS MATERIALIZED (SELECT seq FROM weir_delivery WHERE seq = ANY($1::bigint[]) AND status = 'processing' ORDER BY seq FOR UPDATE)
			UPDATE weir_delivery d SET lease = weir_now() + $3::bigint FROM locked l JOIN given g ON g.seq = l.seq
			WHERE d.seq = l.seq AND d.seq = ANY($1::bigint[]) AND d.status = 'processing' AND d.fence = g.fence RETURNING d.seq, d.fence`,
			args: []any{seqs, fences, lease.Milliseconds()}, row: func(rows values) error {
				var c delivery.Claim
				err := rows.scan(&c.Seq, &c.Fence)
				held[c] = true
				return err
			}})
	})
	if err != nil {
		return nil, fmt.Errorf("renew: %w", err)
	}
	var lost []delivery.Claim
	for _, c := range claims {
		if !held[c] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}
