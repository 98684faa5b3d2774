package dynamosqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// mostSwept limits how many records of a partition a sweep reads.
const mostSwept = 100

// Sweep does maintenance on all records that are due for it. Records that cannot be changed are left as they are. Then
// Sweep returns an error with the work that was done. Several stores may sweep concurrently, and none repeats the work
// of another.
func (s *Store) Sweep(ctx context.Context, away map[string]string) (delivery.Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*asking)
	defer cancel()
	w := &sweep{work: s.work(), away: away, is: delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}}
	var partitions [watches]int
	err := errors.Join(s.unclaim(ctx, w.work), each(partitions[:], func(i, _ int) error { return w.partition(ctx, i) }))
	w.done(ctx)
	if err == nil {
		err = s.recount(ctx)
	}
	return w.is, s.explain("sweep", err)
}

type sweep struct {
	*work
	away map[string]string // unavailable upstreams, with the beginning of the detail of their dead letters

	mu sync.Mutex
	is delivery.Swept
}

// partition reads records from where the last sweep stopped, so that records that cannot be changed do not block later
// ones. At the end it starts again from the beginning.
func (w *sweep) partition(ctx context.Context, n int) error {
	in := &dynamodb.QueryInput{IndexName: aws.String("watch"), KeyConditionExpression: aws.String("w = :w AND t <= :t"), Limit: aws.Int32(mostSwept),
		ExpressionAttributeValues: item{":w": str(strconv.Itoa(n)), ":t": num(now())}}
	w.s.mu.Lock()
	in.ExclusiveStartKey = w.s.swept[n]
	w.s.mu.Unlock()
	var found []item
	var stops item
	err := w.s.query(ctx, in, func(it item) (bool, error) {
		if found = append(found, it); len(found) == mostSwept {
			stops = item{"k": it["k"], "n": it["n"], "w": it["w"], "t": it["t"]}
		}
		return stops == nil, nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, it := range found {
		look := func() error { return w.look(ctx, seqIn(it)) }
		if k := text(it, "k"); strings.HasPrefix(k, wordPrefix) {
			look = func() error { return w.orphan(ctx, k) }
		}
		if err := look(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", text(it, "k"), err))
		}
	}
	if ctx.Err() == nil {
		w.s.mu.Lock()
		w.s.swept[n] = stops
		w.s.mu.Unlock()
	}
	w.mu.Lock()
	w.is.More = w.is.More || stops != nil
	w.mu.Unlock()
	return errors.Join(errs...)
}

// look does what a record needs now.
func (w *sweep) look(ctx context.Context, seq int64) error {
	r, err := w.s.get(ctx, seq)
	at := now()
	switch {
	case err != nil || r == nil:
		return err
	case r.Follow != 0 && r.Follow <= at:
		return w.s.follow(ctx, w.work, r)
	case r.Status == delivery.Processing:
		return w.reap(ctx, seq)
	case r.waits() && r.Expires != 0 && r.Expires <= at:
		return w.expire(ctx, seq)
	case r.Status == delivery.Queued:
		return w.nudge(ctx, seq)
	case r.Status == delivery.Completed, r.Status == delivery.Failed:
		return w.prune(ctx, r)
	}
	return nil
}

func (r *record) waits() bool { return r.Status == delivery.Created || r.Status == delivery.Queued }

// reap ends a claim with an expired lease. The delivery goes back to the queue, or becomes a dead letter after
// MaxStalls. For a claim of another process it allows for a clock that is behind.
func (w *sweep) reap(ctx context.Context, seq int64) error {
	r, changed, err := w.change(ctx, seq, func(r *record) bool {
		at := now()
		over := r.Lease
		if r.Home != w.s.home {
			over += skew.Milliseconds()
		}
		if r.Status != delivery.Processing || over > at {
			return false
		}
		r.ended(&delivery.Attempt{Class: outcome.Unknown, Code: "its worker stopped"}, true)
		r.Status, r.Lease, r.Worker, r.Changed, r.Due = delivery.Queued, 0, "", at, at
		if r.Stalls++; r.Stalls >= delivery.MaxStalls {
			r.Status, r.Reason, r.Detail = delivery.Failed, delivery.Poison, "its attempts repeatedly started and never ended: it may crash the process that sends it"
		}
		r.after()
		return true
	})
	if !changed || err != nil {
		return err
	}
	w.mu.Lock()
	w.is.Reaped++
	w.is.Leaves(string(r.Upstream))
	w.mu.Unlock()
	w.dead(r)
	w.s.then(ctx, w.work, r)
	return nil
}

func (w *sweep) dead(r *record) {
	if r.Status != delivery.Failed {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.is.Dead[string(r.Upstream)]
	if of == nil {
		of = make(map[delivery.Reason]int)
		w.is.Dead[string(r.Upstream)] = of
	}
	of[r.Reason]++
	w.is.Died = append(w.is.Died, delivery.Letter{
		Upstream: string(r.Upstream), ID: string(r.ID), Correlation: string(r.Correlation), Attempts: r.Attempts, Reason: r.Reason,
	})
}

func (w *sweep) expire(ctx context.Context, seq int64) error {
	r, changed, err := w.s.killed(ctx, w.work, seq, delivery.Expired, w.away, "it expired before it could be delivered", func(r *record) bool {
		return r.waits() && r.Expires != 0 && r.Expires <= now()
	})
	if changed {
		w.dead(r)
	}
	return err
}

// kill makes a dead letter of a record if holds returns true.
func (s *Store) kill(ctx context.Context, w *work, seq int64, why delivery.Reason, detail string, holds func(*record) bool) error {
	_, _, err := s.killed(ctx, w, seq, why, nil, detail, holds)
	return err
}

func (s *Store) killed(ctx context.Context, w *work, seq int64, why delivery.Reason, away map[string]string, detail string, holds func(*record) bool) (*record, bool, error) {
	r, changed, err := w.change(ctx, seq, func(r *record) bool {
		if !holds(r) {
			return false
		}
		r.Status, r.Reason, r.Detail, r.Changed = delivery.Failed, why, octets(away[string(r.Upstream)]+detail), now()
		r.Stops = r.Stops && why != delivery.Dropped
		r.after()
		return true
	})
	if changed {
		s.then(ctx, w, r)
	}
	return r, changed, err
}

// nudge sends another message for a due delivery that was not claimed, or the first one for a delivery that is due
// soon.
func (w *sweep) nudge(ctx context.Context, seq int64) error {
	r, changed, err := w.change(ctx, seq, func(r *record) bool {
		if r.Status != delivery.Queued || r.Nudge == 0 || r.Nudge > now() {
			return false
		}
		r.nudged()
		return true
	})
	if changed {
		w.s.wake(r)
	}
	return err
}
