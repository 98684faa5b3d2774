package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// A fleet is the stores that sweep a database, of which this one is one.
type fleet struct {
	n    int64 // how many there are; 0 counts as 1
	rank int64 // of this one, from 0
	met  bool  // it has said that it is there
}

// silent is how long a store may not have swept, and is counted.
const silent = 35 * time.Second

// For a second what is due is left to the store that changed it last, which knows of it. What has been due for longer is shared
// out by number; and what others have left for as long again is anybody's.
//
// mine is the condition of what is this store's to send: $1 is its home, $2 and $3 the fleet.
const mine = "CASE WHEN due > weir_now() - 1000 THEN home = $1::bigint ELSE seq % $2::bigint = $3::bigint END"

// ahead are the first of what is queued for an upstream, after a mark: of those a store chooses. $4 to $7.
const ahead = `SELECT seq, due, home FROM weir_delivery WHERE upstream = $4::text AND status = 'queued' AND (due, seq) > ($5::bigint, $6::bigint)
	AND (expires IS NULL OR expires > weir_now()) `

// Due lists what is due of an upstream, with what is to be sent. Of a fleet each store lists what is its own, so that they do not wait
// for turns for the same; what others leave lying, too. What cannot be sent becomes a dead letter, or it would be in the way of others for ever.
func (s *Store) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	for {
		all, bad, err := s.due(ctx, upstream, after, most)
		if err != nil || len(bad) == 0 {
			return all, err
		}
		if _, err = s.Claim(ctx, delivery.Ask{Upstream: upstream, Only: bad, Lease: time.Minute}); err != nil {
			return all, err
		}
	}
}

func (s *Store) due(ctx context.Context, upstream string, after delivery.Mark, most int) (all []delivery.Delivery, bad []int64, err error) {
	f, n := s.fleetNow(), int64(max(1, most))
	err = s.look(ctx, step{query: `WITH ahead AS MATERIALIZED (` + ahead + `AND due <= weir_now() ORDER BY due, seq LIMIT $7::bigint
		), chosen AS MATERIALIZED (
			SELECT seq FROM (SELECT seq, due, ` + mine + ` AS mine FROM ahead) a WHERE mine OR due <= weir_now() - 2000 ORDER BY NOT mine, due, seq LIMIT $8::bigint
		)
		SELECT ` + recordColumns + requestColumns + ` FROM weir_delivery d JOIN weir_request r ON r.seq = d.seq
		WHERE d.seq = ANY(ARRAY(SELECT seq FROM chosen)) AND r.seq = ANY(ARRAY(SELECT seq FROM chosen)) AND d.status = 'queued'`,
		args: []any{s.home, f.n, f.rank, esc(upstream), stored.Milli(after.Due), after.Seq, n * window(f), n},
		row: func(rows values) error {
			d, why, err := whole(rows)
			if why != nil {
				bad = append(bad, d.Seq)
			} else {
				all = append(all, d)
			}
			return err
		}})
	slices.SortFunc(all, func(a, b delivery.Delivery) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
	})
	return all, bad, err
}

// window is how many times as many are looked at as are wanted.
func window(f fleet) int64 {
	if f.n == 1 {
		return 1
	}
	return f.n + 1
}

func (s *Store) fleetNow() fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.among
	f.n = max(1, f.n)
	return f
}

// Next is when the next queued delivery of an upstream is due for this store. What has expired is not: until a
// sweep has taken it away its worker would look again and again.
func (s *Store) Next(ctx context.Context, upstream string, after delivery.Mark) (at time.Time, ok bool, err error) {
	f := s.fleetNow()
	args := []any{s.home, f.n, f.rank, esc(upstream), stored.Milli(after.Due), after.Seq, 16 * window(f)}
	err = s.look(ctx, step{query: `SELECT min(CASE WHEN $2::bigint = 1 OR ` + mine + ` OR due <= weir_now() - 2000 THEN due ELSE greatest(due, weir_now()) + 1000 END)
		FROM (` + ahead + `ORDER BY due, seq LIMIT $7::bigint) a`, args: args,
		row: func(rows values) error {
			var due *int64
			err := rows.scan(&due)
			if ok = due != nil; ok {
				at = stored.At(*due)
			}
			return err
		}})
	return at, ok, err
}
