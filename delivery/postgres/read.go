package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
	"github.com/seed1158cd35/weir/outcome"
)

const (
	recordColumns = `d.seq, r.id, r.tenant, r.holder, d.upstream, d.status, d.due, r.order_key, coalesce(r.idem_key, ''), r.correlation,
	d.attempts, d.starts, d.series, d.fence, coalesce(d.lease, 0), r.accepted, d.changed, coalesce(d.expires, 0), coalesce(r.token_ends, 0), d.reason, d.detail, r.callback, r.tells`
	requestColumns = `, d.stops, d.not_before, r.method, r.path, r.query, r.header, r.body, r.large`
)

// A record is a row of weir_delivery with its row of weir_request.
type record struct {
	delivery.Delivery
	due, lease, accepted, changed, expires, token, notBefore int64
	header, large                                            string
}

func (r *record) fields() []any {
	d := &r.Delivery
	return []any{&d.Seq, &d.ID, &d.Tenant, &d.Owner, &d.Upstream, &d.Status, &r.due, &d.OrderKey, &d.Key, &d.Correlation,
		&d.Attempts, &d.Starts, &d.Series, &d.Fence, &r.lease, &r.accepted, &r.changed, &r.expires, &r.token, &d.Reason, &d.Detail, &d.Callback, &d.Tells}
}

func (r *record) requestFields() []any {
	d := &r.Delivery
	return append(r.fields(), new(bool), &r.notBefore, &d.Method, &d.Path, &d.Query, &r.header, &d.Body, &r.large)
}

func (r *record) delivery() delivery.Delivery {
	d := r.Delivery
	for _, text := range []*string{&d.ID, &d.Tenant, &d.Owner, &d.Upstream, &d.OrderKey, &d.Key, &d.Correlation, &d.Method, &d.Path, &d.Query, &d.Detail, &d.Callback, &d.Tells} {
		*text = unesc(*text)
	}
	d.Due, d.Accepted, d.Changed = stored.At(r.due), stored.At(r.accepted), stored.At(r.changed)
	for _, of := range [...]struct {
		to *time.Time
		ms int64
	}{{&d.Lease, r.lease}, {&d.Expires, r.expires}, {&d.TokenEnds, r.token}} {
		if of.ms != 0 {
			*of.to = stored.At(of.ms)
		}
	}
	return d
}

// whole reads a row with its request. bad is not nil if the stored request is invalid.
func whole(rows values) (d delivery.Delivery, bad, err error) {
	var r record
	if err = rows.scan(r.requestFields()...); err != nil {
		return d, nil, err
	}
	d = r.delivery()
	d.Header, bad = stored.ReadHeader(unesc(r.header))
	large, torn := delivery.ParseBlob(unesc(r.large))
	d.Large = large
	return d, cmp.Or(bad, torn), nil
}

// Get finds a delivery by its ID.
func (s *Store) Get(ctx context.Context, id string) (d delivery.Delivery, err error) {
	found := false
	err = s.look(ctx, step{query: "SELECT " + recordColumns + requestColumns + " FROM weir_request r JOIN weir_delivery d ON d.seq = r.seq WHERE r.id = $1::text", args: []any{esc(id)},
		row: func(rows values) (err error) {
			found = true
			d, _, err = whole(rows) // people may want to see an invalid one too
			return err
		}})
	if err == nil && !found {
		err = delivery.ErrNotFound
	}
	return d, err
}

// look is transact for queries, which it repeats if the response is lost. It calls row after all rows have arrived.
func (s *Store) look(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	var all []values
	gathers := step{query: st.query, args: st.args, row: func(row values) error {
		kept := make(values, len(row))
		for i, v := range row {
			kept[i] = bytes.Clone(v)
		}
		all = append(all, kept)
		return nil
	}}
	err := delivery.ErrUncertain // to enter the loop
	for n := 0; errors.Is(err, delivery.ErrUncertain) && ctx.Err() == nil && n < 4; n++ {
		err = again(func() error { all = nil; return s.transact(ctx, gathers) })
	}
	for i := 0; err == nil && i < len(all); i++ {
		err = st.row(all[i])
	}
	return err
}

// Attempts returns the attempts of a delivery, the first one first.
func (s *Store) Attempts(ctx context.Context, id string) (all []delivery.Attempt, err error) {
	err = s.look(ctx, step{query: `SELECT a.n, a.series, a.began, a.took, a.status, a.class, a.code, a.answer, a.counted
		FROM weir_request r JOIN weir_attempt a ON a.seq = r.seq WHERE r.id = $1::text ORDER BY a.n`, args: []any{esc(id)},
		row: func(rows values) error {
			var a delivery.Attempt
			var began, took int64
			var class string
			if err := rows.scan(&a.N, &a.Series, &began, &took, &a.Status, &class, &a.Code, &a.Answer, &a.Counted); err != nil {
				return err
			}
			a.Began, a.Took, a.Code = stored.At(began), time.Duration(took)*time.Millisecond, unesc(a.Code)
			a.Class = classOf(class)
			all = append(all, a)
			return nil
		}})
	return all, err
}

func classOf(name string) (c outcome.Class) {
	_ = c.UnmarshalText([]byte(name)) // an unknown name leaves Unknown
	return c
}

// Counts returns the stored counts. The oldest dead letter is the first entry of an index.
func (s *Store) Counts(ctx context.Context) (all []delivery.Count, err error) {
	err = s.look(ctx, step{query: `SELECT upstream, status, sum(n)::bigint, CASE status WHEN 'failed' THEN
			(SELECT min(changed) FROM weir_delivery d WHERE d.upstream = c.upstream AND d.status = 'failed') END,
			CASE status
			WHEN 'queued' THEN (SELECT accepted FROM weir_request WHERE seq = (SELECT min(seq) FROM
				(SELECT seq FROM weir_delivery d WHERE d.upstream = c.upstream AND d.status = 'queued' ORDER BY due, seq LIMIT 1000) first))
			WHEN 'created' THEN (SELECT accepted FROM weir_request WHERE seq =
				(SELECT min(seq) FROM weir_delivery d WHERE d.upstream = c.upstream AND d.status = 'created')) END
		FROM weir_count c GROUP BY upstream, status HAVING sum(n) > 0 ORDER BY upstream, status`,
		row: func(rows values) error {
			var c delivery.Count
			var oldest, waiting *int64
			if err := rows.scan(&c.Upstream, &c.Status, &c.N, &oldest, &waiting); err != nil {
				return err
			}
			if waiting != nil {
				c.Waiting = stored.At(*waiting)
			}
			if c.Upstream = unesc(c.Upstream); oldest != nil {
				c.Oldest = stored.At(*oldest)
			}
			all = append(all, c)
			return nil
		}})
	return all, err
}

// List returns a page of deliveries.
func (s *Store) List(ctx context.Context, f delivery.Filter, cursor string, most int) (page []delivery.Delivery, next string, err error) {
	most = max(1, min(most, stored.MostListed))
	from, err := stored.ReadCursor(f, cursor)
	if err != nil {
		return nil, "", err
	}
	condition, args, err := where(f)
	if err != nil {
		return nil, "", err
	}
	beyond, order := "d.seq < ", "DESC"
	if f.Oldest {
		beyond, order = "d.seq > ", "ASC"
	}
	args = append(args, from, most+1)
	err = s.look(ctx, step{query: fmt.Sprintf("SELECT %s FROM weir_delivery d JOIN weir_request r ON r.seq = d.seq WHERE %s AND %s$%d::bigint ORDER BY d.seq %s LIMIT $%d::bigint",
		recordColumns, condition, beyond, len(args)-1, order, len(args)), args: args,
		row: func(rows values) error {
			var r record
			if err := rows.scan(r.fields()...); err != nil {
				return err
			}
			page = append(page, r.delivery())
			return nil
		}})
	if err != nil {
		return nil, "", err
	}
	if len(page) > most {
		page = page[:most]
		next = stored.WriteCursor(f, page[most-1].Seq)
	}
	return page, next, nil
}

// where returns the SQL condition of a filter. Statuses are literals in it, so that the database can use the partial
// indexes.
func where(f delivery.Filter) (string, []any, error) {
	if err := f.Check(); err != nil {
		return "", nil, err
	}
	conditions, args := []string{"true"}, []any(nil)
	and := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if len(f.IDs) > 0 {
		ids := make([]string, len(f.IDs))
		for i, id := range f.IDs {
			ids[i] = esc(id)
		}
		and("r.id = ANY($%d::text[])", ids)
	}
	if f.Status != "" {
		conditions = append(conditions, "d.status = '"+string(f.Status)+"'") // a known status, by the check
	}
	for _, by := range [...][2]string{{"d.upstream = $%d::text", f.Upstream}, {"d.reason = $%d::text", string(f.Reason)}, {"r.tenant = $%d::text", f.Tenant}, {"r.holder = $%d::text AND r.holder <> ''", f.Owner}} {
		if by[1] != "" {
			and(by[0], esc(by[1]))
		}
	}
	if !f.Before.IsZero() {
		and("d.changed < $%d::bigint", stored.Milli(f.Before))
	}
	return strings.Join(conditions, " AND "), args, nil
}
