package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// reopenEvery is how often weir tries to open the deliveries' store if that failed at the start.
const reopenEvery = 5 * time.Second

// withDeliveries is the subject of the problem report about the deliveries' store.
const withDeliveries = "deliveries"

const deliveriesHelp = "direct calls are served; requests for later delivery get 503 until the file can be opened, which weir tries every 5 seconds: free disk space, or repair the file"

// openFile opens the deliveries' file. If the disk is full or fails, weir starts without it: direct calls do not need
// the file.
func (s *Server) openFile(ctx context.Context, c *config.Deliveries) (engine, error) {
	open := func(ctx context.Context) (*sqlite.Store, error) { return sqlite.Open(ctx, c.File, fileOptions(c)) }
	e, err := open(ctx)
	if err == nil {
		return e, nil
	}
	if !errors.Is(err, delivery.ErrUnavailable) {
		return nil, err
	}
	trying, stop := context.WithCancel(context.Background())
	r := &reopened{stop: stop, ended: make(chan struct{})}
	note := func(err error) { s.troubles.note(withDeliveries, "", deliveriesHelp, err) }
	note(err)
	s.tells.failed("", "deliveries cannot be opened", "")
	go r.try(trying, open, note)
	return r, nil
}

// reopened is a deliveries' file that could not be opened at the start. Until it is open, its methods return
// ErrUnavailable. It is safe for concurrent use.
type reopened struct {
	is    atomic.Pointer[sqlite.Store]
	stop  context.CancelFunc
	ended chan struct{}
}

var (
	_ engine            = (*reopened)(nil)
	_ delivery.Beginner = (*reopened)(nil)
)

// try opens the file as soon as possible.
func (r *reopened) try(ctx context.Context, open func(context.Context) (*sqlite.Store, error), note func(error)) {
	defer close(r.ended)
	for clock.System.Sleep(ctx, reopenEvery) == nil {
		s, err := open(ctx)
		if ctx.Err() == nil {
			note(err)
		}
		if err == nil {
			r.is.Store(s)
			return
		}
	}
}

// Close ends the attempts to open the file, and closes it.
func (r *reopened) Close() error {
	r.stop()
	<-r.ended
	if s := r.is.Load(); s != nil {
		return s.Close()
	}
	return nil
}

// LogSize returns the size of the write-ahead log in bytes.
func (r *reopened) LogSize() int64 {
	if s := r.is.Load(); s != nil {
		return s.LogSize()
	}
	return 0
}

// one calls a method that returns a value.
func one[T any](r *reopened, do func(*sqlite.Store) (T, error)) (v T, err error) {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return v, delivery.ErrUnavailable
}

// two calls a method that returns two values.
func two[T, U any](r *reopened, do func(*sqlite.Store) (T, U, error)) (v T, u U, err error) {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return v, u, delivery.ErrUnavailable
}

// none calls a method that returns only an error.
func none(r *reopened, do func(*sqlite.Store) error) error {
	if s := r.is.Load(); s != nil {
		return do(s)
	}
	return delivery.ErrUnavailable
}

func (r *reopened) Accept(ctx context.Context, q *delivery.Request) (delivery.Delivery, bool, error) {
	return two(r, func(s *sqlite.Store) (delivery.Delivery, bool, error) { return s.Accept(ctx, q) })
}

func (r *reopened) AcceptBegun(ctx context.Context, q *delivery.Request, a delivery.Ask) (delivery.Delivery, bool, error) {
	return two(r, func(s *sqlite.Store) (delivery.Delivery, bool, error) { return s.AcceptBegun(ctx, q, a) })
}

func (r *reopened) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Due(ctx, upstream, after, most) })
}

func (r *reopened) Next(ctx context.Context, upstream string, after delivery.Mark) (time.Time, bool, error) {
	return two(r, func(s *sqlite.Store) (time.Time, bool, error) { return s.Next(ctx, upstream, after) })
}

func (r *reopened) Claim(ctx context.Context, a delivery.Ask) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Claim(ctx, a) })
}

func (r *reopened) Defer(ctx context.Context, until time.Time, seqs ...int64) error {
	return none(r, func(s *sqlite.Store) error { return s.Defer(ctx, until, seqs...) })
}

func (r *reopened) Renew(ctx context.Context, lease time.Duration, claims ...delivery.Claim) ([]delivery.Claim, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Claim, error) { return s.Renew(ctx, lease, claims...) })
}

func (r *reopened) End(ctx context.Context, ends ...delivery.End) ([]delivery.Claim, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Claim, error) { return s.End(ctx, ends...) })
}

func (r *reopened) Sweep(ctx context.Context, away map[string]string) (delivery.Swept, error) {
	return one(r, func(s *sqlite.Store) (delivery.Swept, error) { return s.Sweep(ctx, away) })
}

func (r *reopened) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Redrive(ctx, f, most) })
}

func (r *reopened) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Drop(ctx, f, most) })
}

func (r *reopened) Owing(ctx context.Context, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Delivery, error) { return s.Owing(ctx, after, most) })
}

func (r *reopened) Told(ctx context.Context, seq int64, series int) error {
	return none(r, func(s *sqlite.Store) error { return s.Told(ctx, seq, series) })
}

func (r *reopened) Abandon(ctx context.Context, upstream string) (int, error) {
	return one(r, func(s *sqlite.Store) (int, error) { return s.Abandon(ctx, upstream) })
}

func (r *reopened) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	return one(r, func(s *sqlite.Store) (delivery.Delivery, error) { return s.Get(ctx, id) })
}

func (r *reopened) Attempts(ctx context.Context, id string) ([]delivery.Attempt, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Attempt, error) { return s.Attempts(ctx, id) })
}

func (r *reopened) List(ctx context.Context, f delivery.Filter, cursor string, most int) ([]delivery.Delivery, string, error) {
	return two(r, func(s *sqlite.Store) ([]delivery.Delivery, string, error) { return s.List(ctx, f, cursor, most) })
}

func (r *reopened) Counts(ctx context.Context) ([]delivery.Count, error) {
	return one(r, func(s *sqlite.Store) ([]delivery.Count, error) { return s.Counts(ctx) })
}

func (r *reopened) Begin(ctx context.Context, c *delivery.Keyed) (delivery.Kept, error) {
	return one(r, func(s *sqlite.Store) (delivery.Kept, error) { return s.Begin(ctx, c) })
}

func (r *reopened) Finish(ctx context.Context, c *delivery.Keyed, how delivery.Finish, a *delivery.KeptAnswer) error {
	return none(r, func(s *sqlite.Store) error { return s.Finish(ctx, c, how, a) })
}
