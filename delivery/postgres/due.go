package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// A fleet describes the stores that sweep the same database.
type fleet struct {
	n    int64 // number of stores; 0 counts as 1
	rank int64 // position of this store, from 0
	met  bool  // this store has registered itself
}

// silent is how long after its last sweep a store still counts as present.
const silent = 35 * time.Second

// mine is the condition for a delivery that this store should send. For the first second after it is due, a delivery
// belongs to the store that changed it last, whose worker already knows it. Later, deliveries are divided by seq.
// After another second any store may take them, see Due. $1 is this store's home, and $2 and $3 are the fleet's n and
// rank.
const mine = "CASE WHEN due > weir_now() - 1000 THEN home = $1::bigint ELSE seq % $2::bigint = $3::bigint END"

// ahead selects the queued deliveries of an upstream after a mark, from which a store chooses. It uses $4 to $7.
const ahead = `SELECT seq, due, home FROM weir_delivery WHERE upstream = $4::text AND status = 'queued' AND (due, seq) > ($5::bigint, $6::bigint)
	AND (expires IS NULL OR expires > weir_now()) `

// Due lists due deliveries of an upstream with their requests. Each store of a fleet lists its own, so that the stores
// do not wait for turns with the same deliveries. It also lists deliveries that other stores have left. Due makes dead
// letters of deliveries whose stored request is invalid. Otherwise they would be read again forever.
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

// window returns the factor by which to read more rows, because some belong to other stores.
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

// Next returns when the next queued delivery of an upstream is due for this store. It skips expired ones. Otherwise the
// worker would call Due in a loop until a sweep removes them.
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
