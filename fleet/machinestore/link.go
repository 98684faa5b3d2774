package machinestore

import (
	"context"
	"encoding/gob"
	"errors"
	"net"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A request has one of Take, Beat, Load and Swap. Both ends are of one program, as the directory's name contains the version.
type request struct {
	Timeout time.Duration // 0 for none

	Take  *fleet.Ask
	Beat  *fleet.Beat
	Load  bool
	Swap  *fleet.Record
	Group string
	Names []string
}

// A response is what a store answers.
type response struct {
	Error           string
	Window, Invalid bool // the error is fleet.ErrWindow or fleet.ErrAsk

	Ask      *fleet.Ask // of Take: its answer
	Standing fleet.Standing
	Records  []fleet.Record
	Record   fleet.Record
	OK       bool
	Now      time.Time
}

// A storeError is the error of another process's store.
type storeError struct {
	text string
	is   error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.is }

// err puts the answer into the request, and returns the store's error.
func (r *response) err(q *request) error {
	if q.Take != nil && r.Ask != nil && r.Ask != q.Take {
		q.Take.Now, q.Take.Granted, q.Take.Grants, q.Take.Delay = r.Ask.Now, r.Ask.Granted, append(q.Take.Grants[:0], r.Ask.Grants...), r.Ask.Delay
	}
	switch {
	case r.Window:
		return &storeError{r.Error, fleet.ErrWindow}
	case r.Invalid:
		return &storeError{r.Error, fleet.ErrAsk}
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// execute executes a request with a store.
func execute(ctx context.Context, s fleet.Store, q *request) (r response) {
	var err error
	switch {
	case q.Take != nil:
		err = s.Take(ctx, q.Take)
		r.Ask = q.Take
	case q.Beat != nil:
		r.Standing, err = s.Beat(ctx, q.Beat)
	case q.Load:
		r.Records, r.Now, err = s.Load(ctx, q.Group, q.Names)
	case q.Swap != nil:
		r.Record, r.OK, err = s.Swap(ctx, q.Group, *q.Swap)
	}
	if err != nil {
		r.Error, r.Window, r.Invalid = err.Error(), errors.Is(err, fleet.ErrWindow), errors.Is(err, fleet.ErrAsk)
	}
	return r
}

// answer executes the requests of a connection until it ends.
func answer(c net.Conn, s fleet.Store) {
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	for {
		var q request
		if in.Decode(&q) != nil {
			return
		}
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if q.Timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		}
		r := execute(ctx, s, &q)
		cancel()
		if out.Encode(&r) != nil {
			return
		}
	}
}

// A link is a connection to the holder, for one request at a time.
type link struct {
	conn net.Conn
	in   *gob.Decoder
	out  *gob.Encoder
}

func newLink(c net.Conn) *link {
	return &link{conn: c, in: gob.NewDecoder(c), out: gob.NewEncoder(c)}
}

func (l *link) close() { _ = l.conn.Close() }

// ask sends a request and waits for the response. After an error, the link is unusable. sent reports whether the
// holder may have executed the request.
func (l *link) ask(ctx context.Context, q *request) (r response, sent bool, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = max(time.Until(deadline), 1)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx) // the deadline of the link has passed
		}
	}()
	if err := l.out.Encode(q); err != nil {
		return r, false, err
	}
	err = l.in.Decode(&r)
	return r, true, err
}
