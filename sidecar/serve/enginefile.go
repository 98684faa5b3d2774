package serve

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A fileEngine is a deliveries' file that Check opens. Until it is open, its methods return ErrUnavailable. It is safe for concurrent use.
type fileEngine struct {
	open func(context.Context) (*sqlite.Store, error)
	is   atomic.Pointer[sqlite.Store]
}

var (
	_ engine            = (*fileEngine)(nil)
	_ delivery.Beginner = (*fileEngine)(nil)
	_ delivery.Marker   = (*fileEngine)(nil)
)

// Check opens the file if it is not open. Only one goroutine may use Check and Close.
func (r *fileEngine) Check(ctx context.Context) error {
	if s := r.is.Load(); s != nil {
		return s.Check(ctx)
	}
	s, err := r.open(ctx)
	if err == nil {
		r.is.Store(s)
		err = s.Check(ctx)
	}
	return err
}

// Close closes the file if it is open.
func (r *fileEngine) Close() error {
	if s := r.is.Load(); s != nil {
		return s.Close()
	}
	return nil
}

// LogSize returns the size of the write-ahead log in bytes.
func (r *fileEngine) LogSize() int64 {
	if s := r.is.Load(); s != nil {
		return s.LogSize()
	}
	return 0
}

// one calls a method that returns a value.
func one[T any](r *fileEngine, do func(*sqlite.Store) (T, error)) (v T, err error) {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return v, delivery.ErrUnavailable
}

// two calls a method that returns two values.
func two[T, U any](r *fileEngine, do func(*sqlite.Store) (T, U, error)) (v T, u U, err error) {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return v, u, delivery.ErrUnavailable
}

// none calls a method that returns only an error.
func none(r *fileEngine, do func(*sqlite.Store) error) error {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return delivery.ErrUnavailable
}

func (r *fileEngine) Accept(ctx context.Context, q *delivery.Request) (delivery.Delivery, bool, error) {
	return two(r, func(s *sqlite.Store) (delivery.Delivery, bool, error) { return s.Accept(ctx, q) })
}

func (r *fileEngine) AcceptBegun(ctx context.Context, q *delivery.Request, a delivery.Ask) (delivery.Delivery, bool, error) {
	return two(r, func(s *sqlite.Store) (delivery.Delivery, bool, error) { return s.AcceptBegun(ctx, q, a) })
}

func (r *fileEngine) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Due(ctx, upstream, after, most) })
}

func (r *fileEngine) Marks(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Mark, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Mark, error) { return s.Marks(ctx, upstream, after, most) })
}

func (r *fileEngine) Next(ctx context.Context, upstream string, after delivery.Mark) (time.Time, bool, error) {
	return two(r, func(s *sqlite.Store) (time.Time, bool, error) { return s.Next(ctx, upstream, after) })
}

func (r *fileEngine) Claim(ctx context.Context, a delivery.Ask) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Claim(ctx, a) })
}

func (r *fileEngine) Defer(ctx context.Context, until time.Time, seqs ...int64) error {
	return none(r, func(s *sqlite.Store) error { return s.Defer(ctx, until, seqs...) })
}

func (r *fileEngine) Renew(ctx context.Context, lease time.Duration, claims ...delivery.Claim) ([]delivery.Claim, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Claim, error) { return s.Renew(ctx, lease, claims...) })
}

func (r *fileEngine) End(ctx context.Context, ends ...delivery.End) ([]delivery.Claim, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Claim, error) { return s.End(ctx, ends...) })
}

func (r *fileEngine) Sweep(ctx context.Context, away map[string]string) (delivery.Swept, error) {
	return one(r, func(s *sqlite.Store) (delivery.Swept, error) { return s.Sweep(ctx, away) })
}

func (r *fileEngine) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Redrive(ctx, f, most) })
}

func (r *fileEngine) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Drop(ctx, f, most) })
}

func (r *fileEngine) Owing(ctx context.Context, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Owing(ctx, after, most) })
}

func (r *fileEngine) Told(ctx context.Context, seq int64, series int) error {
	return none(r, func(s *sqlite.Store) error { return s.Told(ctx, seq, series) })
}

func (r *fileEngine) Abandon(ctx context.Context, upstream string) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Abandon(ctx, upstream) })
}

func (r *fileEngine) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) (delivery.Delivery, error) { return s.Get(ctx, id) })
}

func (r *fileEngine) Attempts(ctx context.Context, id string) ([]delivery.Attempt, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Attempt, error) { return s.Attempts(ctx, id) })
}

func (r *fileEngine) List(ctx context.Context, f delivery.Filter, cursor string, most int) ([]delivery.Delivery, string, error) {
	return two(r, func(s *sqlite.Store) ([]delivery.Delivery, string, error) { return s.List(ctx, f, cursor, most) })
}

func (r *fileEngine) Counts(ctx context.Context) ([]delivery.Count, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Count, error) { return s.Counts(ctx) })
}

func (r *fileEngine) Begin(ctx context.Context, c *delivery.Keyed) (delivery.Kept, error) {
	return one(r, func(s *sqlite.Store) (delivery.Kept, error) { return s.Begin(ctx, c) })
}

func (r *fileEngine) Finish(ctx context.Context, c *delivery.Keyed, how delivery.Finish, a *delivery.KeptAnswer) error {
	return none(r, func(s *sqlite.Store) error { return s.Finish(ctx, c, how, a) })
}
