package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
	"github.com/seed1158cd35/weir/outcome"
)

const columns = `d.seq, d.id, d.tenant, d.holder, d.upstream, d.status, d.due, d.order_key, d.idem_key, d.correlation,
	d.attempts, d.starts, d.series, d.fence, d.lease, d.accepted, d.changed, d.expires, d.token_ends, d.reason, d.detail, d.callback, d.tells`

// A record is a row of delivery.
type record struct {
	delivery.Delivery
	due, accepted, changed int64
	lease, expires, token  sql.NullInt64
	orderKey, key          sql.NullString
}

func (r *record) fields() []any {
	d := &r.Delivery
	return []any{&d.Seq, &d.ID, &d.Tenant, &d.Owner, &d.Upstream, &d.Status, &r.due, &r.orderKey, &r.key, &d.Correlation,
		&d.Attempts, &d.Starts, &d.Series, &d.Fence, &r.lease, &r.accepted, &r.changed, &r.expires, &r.token, &d.Reason, &d.Detail, &d.Callback, &d.Tells}
}

func (r *record) delivery() delivery.Delivery {
	d := r.Delivery
	d.Due, d.Accepted, d.Changed = stored.At(r.due), stored.At(r.accepted), stored.At(r.changed)
	d.OrderKey, d.Key = r.orderKey.String, r.key.String
	if r.lease.Valid {
		d.Lease = stored.At(r.lease.Int64)
	}
	if r.expires.Valid {
		d.Expires = stored.At(r.expires.Int64)
	}
	if r.token.Valid {
		d.TokenEnds = stored.At(r.token.Int64)
	}
	return d
}

// rows is implemented by the rows of a reader and of the writer.
type rows interface {
	Next() bool
	Scan(to ...any) error
	Err() error
	Close() error
}

// withRequest reads rows of both tables. bad are deliveries whose stored request is missing or invalid.
func withRequest(rows rows) (all, bad []delivery.Delivery, err error) {
	defer rows.Close()
	for rows.Next() {
		var r record
		var q request
		if err := rows.Scan(append(r.fields(), q.fields()...)...); err != nil {
			return nil, nil, err
		}
		if err := q.to(&r.Request); err != nil {
			bad = append(bad, r.delivery())
			continue
		}
		all = append(all, r.delivery())
	}
	return all, bad, rows.Err()
}

// A request is a row of request, which may be missing.
type request struct {
	method, path, query, header sql.NullString
	body                        []byte
	large                       sql.NullString
}

func (q *request) fields() []any {
	return []any{&q.method, &q.path, &q.query, &q.header, &q.body, &q.large}
}

var errNoRequest = errors.New("its request is no longer stored")

func (q *request) to(r *delivery.Request) (err error) {
	if !q.method.Valid {
		return errNoRequest
	}
	r.Method, r.Path, r.Query, r.Body = q.method.String, q.path.String, q.query.String, q.body
	if r.Large, err = delivery.ParseBlob(q.large.String); err != nil {
		return err
	}
	r.Header, err = stored.ReadHeader(q.header.String)
	return err
}

const withRequests = "SELECT " + columns + ", q.method, q.path, q.query, q.header, q.body, q.large FROM delivery d LEFT JOIN request q ON q.seq = d.seq "

// ask runs a query as a prepared statement that is kept, because preparing a statement usually takes longer than running it.
// Texts must be constants.
func (s *Store) ask(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	is, ok := s.asks.Load(query)
	if !ok {
		made, err := s.read.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		if is, ok = s.asks.LoadOrStore(query, made); ok {
			_ = made.Close()
		}
	}
	return is.(*sql.Stmt).QueryContext(ctx, args...)
}

// Due lists due deliveries of an upstream with their requests. It makes dead letters of deliveries whose stored request
// is invalid. Otherwise they would be read again forever.
func (s *Store) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	for {
		all, bad, err := s.due(ctx, upstream, after, most)
		if err != nil || len(bad) == 0 {
			return all, err
		}
		var only []int64
		for _, d := range bad {
			only = append(only, d.Seq)
		}
		if _, err = s.Claim(ctx, delivery.Ask{Upstream: upstream, Only: only, Lease: time.Minute}); err != nil {
			return all, err
		}
	}
}

func (s *Store) due(ctx context.Context, upstream string, after delivery.Mark, most int) (all, bad []delivery.Delivery, err error) {
	now := s.wall()
	rows, err := s.ask(ctx, withRequests+`WHERE d.upstream = ? AND d.status = 'queued' AND d.due <= ? AND (d.due, d.seq) > (?, ?) AND (d.expires IS NULL OR d.expires > ?)
		ORDER BY d.due, d.seq LIMIT ?`, upstream, now, stored.Milli(after.Due), after.Seq, now, most)
	if err != nil {
		return nil, nil, err
	}
	return withRequest(rows)
}

// Marks returns the marks of queued deliveries that are due. It reads only an index, so the result may include expired
// ones.
func (s *Store) Marks(ctx context.Context, upstream string, after delivery.Mark, most int) (all []delivery.Mark, err error) {
	rows, err := s.ask(ctx, "SELECT due, seq FROM delivery WHERE upstream = ? AND status = 'queued' AND due <= ? AND (due, seq) > (?, ?) ORDER BY due, seq LIMIT ?",
		upstream, s.wall(), stored.Milli(after.Due), after.Seq, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var due, seq int64
		if err := rows.Scan(&due, &seq); err != nil {
			return nil, err
		}
		all = append(all, delivery.Mark{Due: stored.At(due), Seq: seq})
	}
	return all, rows.Err()
}

// Next returns when the next queued delivery of an upstream is due. It skips expired ones. Otherwise the worker would
// call Due in a loop until a sweep removes them.
func (s *Store) Next(ctx context.Context, upstream string, after delivery.Mark) (time.Time, bool, error) {
	var due int64
	rows, err := s.ask(ctx, "SELECT due FROM delivery WHERE upstream = ? AND status = 'queued' AND (due, seq) > (?, ?) AND (expires IS NULL OR expires > ?) ORDER BY due, seq LIMIT 1", upstream, stored.Milli(after.Due), after.Seq, s.wall())
	if err != nil {
		return time.Time{}, false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return time.Time{}, false, rows.Err()
	}
	err = rows.Scan(&due)
	return stored.At(due), err == nil, err
}

// Get finds a delivery by its ID.
func (s *Store) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	rows, err := s.ask(ctx, withRequests+"WHERE d.id = ?", id)
	if err != nil {
		return delivery.Delivery{}, err
	}
	return theOne(rows)
}

func theOne(rows rows) (delivery.Delivery, error) {
	all, bad, err := withRequest(rows)
	all = append(all, bad...) // people may want to see it even without its request
	if err == nil && len(all) == 0 {
		err = delivery.ErrNotFound
	}
	if err != nil {
		return delivery.Delivery{}, err
	}
	return all[0], nil
}

// Attempts returns the attempts of a delivery, the first one first.
func (s *Store) Attempts(ctx context.Context, id string) (all []delivery.Attempt, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT a.n, a.series, a.began, a.took, a.status, a.class, a.code, a.answer, a.counted
		FROM attempt a JOIN delivery d ON d.seq = a.seq WHERE d.id = ? ORDER BY a.n`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a delivery.Attempt
		var began, took int64
		var class string
		if err := rows.Scan(&a.N, &a.Series, &began, &took, &a.Status, &class, &a.Code, &a.Answer, &a.Counted); err != nil {
			return nil, err
		}
		a.Began, a.Took, a.Class = stored.At(began), time.Duration(took)*time.Millisecond, classOf(class)
		all = append(all, a)
	}
	return all, rows.Err()
}

func classOf(name string) (c outcome.Class) {
	_ = c.UnmarshalText([]byte(name)) // an unknown name leaves Unknown
	return c
}

// Counts returns the stored counts. The oldest dead letter is the first entry of an index.
func (s *Store) Counts(ctx context.Context) (all []delivery.Count, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT upstream, status, n, CASE status WHEN 'failed' THEN
		(SELECT min(changed) FROM delivery d WHERE d.upstream = counts.upstream AND d.status = 'failed') END,
		CASE WHEN status IN ('created', 'queued') THEN
		(SELECT accepted FROM delivery d WHERE d.upstream = counts.upstream AND d.status IN ('created', 'queued') ORDER BY d.seq LIMIT 1) END
		FROM counts WHERE n > 0 ORDER BY upstream, status`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c delivery.Count
		var oldest, waiting sql.NullInt64
		if err := rows.Scan(&c.Upstream, &c.Status, &c.N, &oldest, &waiting); err != nil {
			return nil, err
		}
		if oldest.Valid {
			c.Oldest = stored.At(oldest.Int64)
		}
		if waiting.Valid {
			c.Waiting = stored.At(waiting.Int64)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// where returns the SQL condition of a filter. Statuses are literals in it, so that SQLite can use the partial indexes.
func where(f delivery.Filter) (string, []any, error) {
	if err := f.Check(); err != nil {
		return "", nil, err
	}
	conditions, args := []string{"1"}, []any(nil)
	and := func(condition string, values ...any) {
		conditions, args = append(conditions, condition), append(args, values...)
	}
	if len(f.IDs) > 0 {
		ids, _ := json.Marshal(f.IDs) // strings: it cannot fail
		and("d.id IN (SELECT value FROM json_each(?))", string(ids))
	}
	if f.Status != "" {
		and("d.status = '" + string(f.Status) + "'") // a known status, by the check
	}
	for _, by := range [...][2]string{{"upstream", f.Upstream}, {"reason", string(f.Reason)}, {"tenant", f.Tenant}} {
		if by[1] != "" {
			and("d."+by[0]+" = ?", by[1])
		}
	}
	if f.Owner != "" {
		and("d.holder = ? AND d.holder <> ''", f.Owner) // the condition of the index
	}
	if !f.Before.IsZero() {
		and("d.changed < ?", stored.Milli(f.Before))
	}
	return strings.Join(conditions, " AND "), args, nil
}
