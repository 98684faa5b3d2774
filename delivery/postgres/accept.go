package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// An acceptance is a request that is being stored.
type acceptance struct {
	r      *delivery.Request
	named  bool         // the caller made the ID
	begins delivery.Ask // the claim to make with it; none if its lease is 0
	header string
	print  []byte

	is    delivery.Delivery // the delivery, stored now or before
	fresh bool
	over  error // why there is no room for it if it is new
	err   error // an error of this request only
}

// Accept stores a request.
func (s *Store) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	return s.accept(ctx, r, r.ID != "", delivery.Ask{})
}

// AcceptBegun stores a request and claims it.
func (s *Store) AcceptBegun(ctx context.Context, r *delivery.Request, a delivery.Ask) (delivery.Delivery, bool, error) {
	return s.accept(ctx, r, false, a)
}

func (s *Store) accept(ctx context.Context, r *delivery.Request, named bool, begins delivery.Ask) (delivery.Delivery, bool, error) {
	if err := r.CheckForm(); err != nil {
		return delivery.Delivery{}, false, err
	}
	late := r.CheckTimes(time.Now())
	if late != nil && r.Key == "" && !named {
		return delivery.Delivery{}, false, late
	}
	kept := *r
	if begins.Lease == 0 {
		kept.Body = bytes.Clone(r.Body) // the caller may return before it is stored, and change it
	}
	if kept.ID == "" {
		kept.ID = delivery.NewID(time.Now())
	}
	header, err := stored.WriteHeader(kept.Header)
	if err != nil {
		return delivery.Delivery{}, false, err
	}
	a := &acceptance{r: &kept, named: named, begins: begins, header: header, print: kept.Fingerprint()}
	if late != nil {
		err = s.acceptLate(ctx, a, late)
	} else if err = s.accepts.want(ctx, a); err == nil {
		err = a.err
		if err == nil && a.over != nil {
			if err = a.over; r.Key != "" || named {
				err = s.acceptLate(ctx, a, a.over)
			}
		}
	}
	if err != nil {
		return delivery.Delivery{Request: kept}, false, fmt.Errorf("accept: %w", err)
	}
	return a.is, a.fresh, nil
}

// acceptAll stores the new ones of several requests and finds the rest. If the database's response is lost, acceptAll
// asks again while there is time: a request that was stored is then found by its ID.
func (s *Store) acceptAll(all []*acceptance) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), accepting)
	defer cancel()
	all, err = s.admit(ctx, all)
	if err != nil || len(all) == 0 {
		return err
	}
	defer func() { s.settle(all, err) }()
	rest, err := s.storeAll(ctx, all, true)
	if taken(err) {
		rest, err = s.storeAll(ctx, all, false)
	}
	for n := 0; errors.Is(err, delivery.ErrUncertain) && ctx.Err() == nil && n < 3; n++ {
		if found, failed := s.storeAll(ctx, all, false); failed == nil { // otherwise the outcome of the first attempt stays unknown
			rest, err = found, nil
		}
	}
	if errors.Is(err, delivery.ErrUncertain) {
		s.unbeginLater(all)
	}
	if err != nil {
		return err
	}
	for _, a := range rest {
		a.err = s.acceptKnown(ctx, a)
	}
	return nil
}

// acceptLate finds an earlier delivery of the request, and stores nothing.
func (s *Store) acceptLate(ctx context.Context, a *acceptance, late error) error {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	found, err := s.known(ctx, a)
	if err == nil && !found {
		err = late
	}
	return err
}

// acceptKnown handles a request that was not stored because of a conflict. It finds the earlier delivery, or stores the
// request if that was deleted meanwhile.
func (s *Store) acceptKnown(ctx context.Context, a *acceptance) error {
	for range 5 {
		found, err := s.known(ctx, a)
		if err != nil || found {
			return err
		}
		rest, err := s.storeAll(ctx, []*acceptance{a}, false)
		if err != nil || len(rest) == 0 {
			return err
		}
	}
	return errors.New("other requests with the same key keep changing the record")
}

// storeAll stores requests. It returns the requests that were not stored because their key or ID exists. isNew means
// that this is the first attempt to store them.
func (s *Store) storeAll(ctx context.Context, all []*acceptance, isNew bool) (rest []*acceptance, err error) {
	var c columns
	locks := make(map[int64]bool)
	byID := make(map[string]*acceptance, len(all))
	plain := make(map[begun][]*acceptance)
	for _, a := range all {
		switch {
		case byID[a.r.ID] != nil:
			continue
		case isNew && a.plain():
			is := begun{a.begins.Lease, a.begins.Owner}
			plain[is] = append(plain[is], a)
		default:
			c.add(a, locks)
		}
		byID[a.r.ID] = a
	}
	steps := locking(locks)
	for _, alike := range plain {
		steps = append(steps, s.plainly(alike))
	}
	if len(c.ids) > 0 {
		steps = append(steps, step{query: insert, args: append(c.args(), s.home, s.begun), row: func(r values) error {
			var id, status string
			var seq, due, accepted int64
			err := r.scan(&id, &seq, &status, &due, &accepted)
			if err == nil {
				byID[unesc(id)].stored(seq, delivery.Status(status), due, accepted)
			}
			return err
		}})
	}
	var riders []*job[*ending]
	if isNew && len(c.ids) == 0 { // these statements wait for no lock
		riders = s.riders()
		s.rides.begins()
		defer s.rides.ends()
	}
	err = s.storeWith(ctx, all, steps, riders)
	s.arrive(riders, err)
	if len(riders) > 0 && err != nil && !errors.Is(err, delivery.ErrUncertain) && !unreachable(err) { // the error may concern a rider only
		err = s.storeWith(ctx, all, steps, nil)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if !a.fresh {
			rest = append(rest, a)
		}
	}
	return rest, nil
}

func (s *Store) storeWith(ctx context.Context, all []*acceptance, steps []step, riders []*job[*ending]) error {
	return again(func() error {
		for _, a := range all {
			a.fresh = false
		}
		return s.transact(ctx, append(steps[:len(steps):len(steps)], s.ride(riders)...)...)
	})
}

// A begun is the claim that is made with a stored request.
type begun struct {
	lease time.Duration
	owner string
}

// stored sets the result of a request that has just been stored.
func (a *acceptance) stored(seq int64, status delivery.Status, due, accepted int64) {
	a.is = delivery.Delivery{Request: *a.r, Seq: seq, Status: status, Due: stored.At(due), Series: 1, Accepted: stored.At(accepted), Changed: stored.At(accepted)}
	if status == delivery.Processing {
		a.is.Fence, a.is.Attempts, a.is.Starts, a.is.Lease = 1, 1, 1, stored.At(accepted).Add(a.begins.Lease)
	}
	a.fresh = true
}

// locking returns the step that takes advisory locks, in ascending order.
func locking(locks map[int64]bool) []step {
	if len(locks) == 0 {
		return nil
	}
	return []step{{query: "SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) k", args: []any{sorted(locks)}}}
}

func sorted(set map[int64]bool) []int64 {
	all := make([]int64, 0, len(set))
	for n := range set {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// columns contains the values of requests by column, one element per request.
type columns struct {
	ids, tenants, owners, upstreams, keys, orderKeys, correlations, methods, paths, queries, headers, workers, callbacks, tells, larges []string
	prints, bodies                                                                                                                      [][]byte
	notBefore, expires, tokens, lines, leases                                                                                           []int64
	keyed, stops                                                                                                                        []bool
}

func (c *columns) add(a *acceptance, locks map[int64]bool) {
	r := a.r
	line := int64(0)
	if r.OrderKey != "" {
		line = lineOf(r.Upstream, r.Tenant, r.OrderKey)
		locks[line] = true
	}
	if r.Key != "" {
		locks[lockOf(r.Upstream, r.Tenant, r.Key)] = true
	}
	for _, f := range [...]struct {
		to *[]string
		is string
	}{{&c.ids, r.ID}, {&c.tenants, r.Tenant}, {&c.owners, r.Owner}, {&c.upstreams, r.Upstream}, {&c.keys, r.Key}, {&c.orderKeys, r.OrderKey},
		{&c.correlations, r.Correlation}, {&c.methods, r.Method}, {&c.paths, r.Path}, {&c.queries, r.Query}, {&c.headers, a.header}, {&c.workers, a.begins.Owner},
		{&c.callbacks, r.Callback}, {&c.tells, r.Tells}, {&c.larges, r.Large.String()}} {
		*f.to = append(*f.to, esc(f.is))
	}
	c.prints, c.bodies = append(c.prints, a.print), append(c.bodies, some(r.Body))
	c.notBefore, c.expires, c.tokens = append(c.notBefore, stored.Milli(r.NotBefore)), append(c.expires, stored.Milli(r.Expires)), append(c.tokens, stored.Milli(r.TokenEnds))
	c.leases = append(c.leases, a.begins.Lease.Milliseconds())
	c.lines, c.keyed, c.stops = append(c.lines, line), append(c.keyed, r.OrderKey != ""), append(c.stops, r.OrderKey != "" && r.Stop)
}

func (c *columns) args() []any {
	return []any{c.ids, c.tenants, c.owners, c.upstreams, c.keys, c.orderKeys, c.correlations, c.methods, c.paths, c.queries, c.headers,
		c.prints, c.bodies, c.notBefore, c.expires, c.tokens, c.lines, c.keyed, c.stops, c.leases, c.workers, c.callbacks, c.tells, c.larges}
}

// insert stores requests with unknown keys and IDs. Requests with the same order key get positions in the order given.
const insert = `WITH given AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
		$12::bytea[], $13::bytea[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::boolean[], $19::boolean[], $20::bigint[], $21::text[], $22::text[], $23::text[], $24::text[]) WITH ORDINALITY
	AS g(id, tenant, holder, upstream, idem_key, order_key, correlation, method, path, query, header, fingerprint, body, not_before, expires, token_ends, line, keyed, stops, lease, worker, callback, tells, large, n)
), request AS (
	INSERT INTO weir_request(id, tenant, holder, upstream, idem_key, order_key, fingerprint, correlation, method, path, query, header, body, token_ends, callback, tells, large, accepted)
	SELECT id, tenant, holder, upstream, NULLIF(idem_key, ''), order_key, fingerprint, correlation, method, path, query, header, body, NULLIF(token_ends, 0), callback, tells, large, weir_now()
	FROM given g WHERE NOT EXISTS (SELECT FROM weir_past p WHERE g.idem_key <> '' AND p.upstream = g.upstream AND p.tenant = g.tenant AND p.idem_key = g.idem_key AND p.until > weir_now())
	ORDER BY n
	ON CONFLICT DO NOTHING RETURNING seq, id, accepted, tenant, ` + sizeOf + ` AS size
), stocked AS (
	INSERT INTO weir_stock(tenant, n, bytes) SELECT tenant, count(*), sum(size) FROM request GROUP BY tenant
), placed AS (
	SELECT r.seq, r.accepted, g.*, CASE WHEN keyed THEN row_number() OVER (PARTITION BY keyed, g.line ORDER BY n)
		+ coalesce((SELECT max(place) FROM weir_delivery d WHERE d.line = g.line AND ` + inLine + `), 0) ELSE 0 END AS place
	FROM request r JOIN given g ON g.id = r.id
), ready AS (
	SELECT *, lease > 0 AND place <= 1 AND not_before <= accepted AND (expires = 0 OR expires > accepted) AS begins FROM placed
), delivery AS (
	INSERT INTO weir_delivery(seq, upstream, status, due, not_before, expires, line, place, stops, home, changed,
		attempts, starts, fence, token, lease, began, worker, told)
	SELECT seq, upstream, CASE WHEN begins THEN 'processing' WHEN place > 1 THEN 'created' ELSE 'queued' END, greatest(accepted, not_before), not_before, NULLIF(expires, 0),
		CASE WHEN keyed THEN line END, place, stops, $25::bigint, accepted,
		begins::integer, begins::integer, begins::integer, CASE WHEN begins THEN $26::bigint END, CASE WHEN begins THEN accepted + lease END, CASE WHEN begins THEN accepted END, CASE WHEN begins THEN worker ELSE '' END,
		CASE WHEN callback <> '' AND tells = '' THEN 0 END
	FROM ready RETURNING seq, upstream, status, due, changed
), counted AS (
	INSERT INTO weir_count(upstream, status, n) SELECT upstream, status, count(*) FROM delivery GROUP BY upstream, status
)
SELECT r.id, d.seq, d.status, d.due, d.changed FROM delivery d JOIN request r ON r.seq = d.seq`

// known finds a delivery that was accepted under the same key or ID.
func (s *Store) known(ctx context.Context, a *acceptance) (bool, error) {
	type row struct {
		id, tenant, key string
		print           []byte
	}
	var is []row
	r := a.r
	err := s.transact(ctx, step{query: `SELECT id, tenant, coalesce(idem_key, ''), fingerprint FROM weir_request
		WHERE $3::text <> '' AND upstream = $1::text AND tenant = $2::text AND idem_key = $3::text AND idem_key IS NOT NULL
		UNION ALL SELECT id, tenant, coalesce(idem_key, ''), fingerprint FROM weir_request WHERE id = $4::text`,
		args: []any{esc(r.Upstream), esc(r.Tenant), esc(r.Key), esc(r.ID)},
		row: func(rows values) error {
			var f row
			err := rows.scan(&f.id, &f.tenant, &f.key, &f.print)
			is = append(is, f)
			return err
		}})
	switch {
	case err != nil:
		return false, err
	case len(is) == 0 && r.Key != "":
		return s.past(ctx, a)
	case len(is) == 0:
		return false, nil
	case is[0].tenant != esc(r.Tenant) || is[0].key != esc(r.Key) || !bytes.Equal(is[0].print, a.print):
		return true, delivery.ErrKeyReused
	}
	a.is, err = s.Get(ctx, unesc(is[0].id))
	if errors.Is(err, delivery.ErrNotFound) { // it was deleted meanwhile
		return false, nil
	}
	a.fresh = err == nil && !a.named && a.is.ID == r.ID // only this call knows the ID, so an earlier response was lost
	return true, err
}

// past finds the result of a delivery that was accepted under the key and has been deleted.
func (s *Store) past(ctx context.Context, a *acceptance) (found bool, err error) {
	d := delivery.Delivery{Request: *a.r, Series: 1}
	var print []byte
	var accepted, changed int64
	err = s.transact(ctx, step{query: `SELECT id, fingerprint, status, reason, detail, attempts, accepted, changed FROM weir_past
		WHERE upstream = $1::text AND tenant = $2::text AND idem_key = $3::text AND until > weir_now()`,
		args: []any{esc(a.r.Upstream), esc(a.r.Tenant), esc(a.r.Key)},
		row: func(rows values) error {
			found = true
			return rows.scan(&d.ID, &print, &d.Status, &d.Reason, &d.Detail, &d.Attempts, &accepted, &changed)
		}})
	if err != nil || !found {
		return false, err
	}
	if !bytes.Equal(print, a.print) {
		return true, delivery.ErrKeyReused
	}
	d.ID, d.Detail = unesc(d.ID), unesc(d.Detail)
	d.Accepted, d.Changed = stored.At(accepted), stored.At(changed)
	a.is, a.fresh = d, false
	return true, nil
}
