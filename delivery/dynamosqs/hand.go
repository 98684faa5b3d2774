package dynamosqs

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// byHand calls do for up to most deliveries that match a filter, the oldest first. It returns how many were changed.
func (s *Store) byHand(ctx context.Context, f delivery.Filter, of []delivery.Status, most int, do func(w *work, r *record) (bool, error)) (n int, err error) {
	w := s.work()
	defer w.done(ctx)
	f.Oldest = true
	err = s.scan(ctx, f, of, 0, func(r *record) (bool, error) {
		done, err := do(w, r)
		if done {
			n++
		}
		return n < max(1, most), err
	})
	return n, err
}

// Redrive queues dead letters again.
func (s *Store) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	if err := f.Check(); err != nil {
		return 0, fmt.Errorf("redrive: %w", err)
	}
	if f.Status != "" && f.Status != delivery.Failed {
		return 0, nil
	}
	n, err := s.byHand(ctx, f, []delivery.Status{delivery.Failed}, most, func(w *work, r *record) (bool, error) {
		return s.redrive(ctx, w, r, f.TokenEnded)
	})
	return n, s.explain("redrive", err)
}

// redrive begins a new series as described by delivery.Queue. It increments the fence, so that a late end of an earlier
// attempt is not taken for one of this series. A delivery with an order key becomes created, and is queued if it is the
// first.
func (s *Store) redrive(ctx context.Context, w *work, r *record, ended bool) (bool, error) {
	if r.TokenEnds != 0 && r.TokenEnds <= now() && !ended {
		return false, nil
	}
	place, err := r.Place, error(nil)
	if r.line() != "" && !r.Stops {
		if place, err = s.lastPlace(ctx, r.line()); err != nil {
			return false, err
		}
	}
	stopped := r.Stops
	r, changed, err := w.change(ctx, r.seq, func(r *record) bool {
		if r.Status != delivery.Failed || r.Stops != stopped {
			return false
		}
		at := now()
		r.Status, r.Place, r.Series, r.Fence, r.Attempts, r.Stalls = delivery.Queued, place, r.Series+1, r.Fence+1, 0, 0
		r.Due, r.Changed, r.Reason, r.Detail = max(r.NotBefore, at), at, "", ""
		switch {
		case r.Expires > at:
		case r.TokenEnds > at:
			r.Expires = r.TokenEnds
		default:
			r.Expires = 0
		}
		if r.after(); r.line() != "" {
			r.Status, r.Nudge, r.Follow = delivery.Created, 0, at+following
		}
		return true
	})
	if changed {
		s.then(ctx, w, r)
	}
	return changed, err
}

// Drop makes dead letters of waiting deliveries, or deletes dead letters.
func (s *Store) Drop(ctx context.Context, f delivery.Filter, most int) (n int, err error) {
	if err = f.Check(); err == nil && f.All() {
		err = &delivery.FieldError{Field: "filter", Reason: "is empty: select the deliveries to drop"}
	}
	if err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	if f.Status == delivery.Failed {
		n, err = s.byHand(ctx, f, nil, most, func(w *work, r *record) (bool, error) { return s.erase(ctx, w, r) })
	} else {
		n, err = s.killAll(ctx, f, most, delivery.Dropped, "dropped by an operator")
	}
	return n, s.explain("drop", err)
}

func (s *Store) killAll(ctx context.Context, f delivery.Filter, most int, why delivery.Reason, detail string) (int, error) {
	of := []delivery.Status{delivery.Created, delivery.Queued}
	switch f.Status {
	case "":
	case delivery.Created, delivery.Queued:
		of = []delivery.Status{f.Status}
	default:
		return 0, nil
	}
	return s.byHand(ctx, f, of, most, func(w *work, r *record) (bool, error) {
		_, changed, err := s.killed(ctx, w, r.seq, why, nil, detail, (*record).waits)
		return changed, err
	})
}

// Abandon makes dead letters of the waiting deliveries of a removed upstream.
func (s *Store) Abandon(ctx context.Context, upstream string) (int, error) {
	n, err := s.killAll(ctx, delivery.Filter{Upstream: upstream}, mostSwept, delivery.Gone, "the configuration has no upstream "+upstream+" any more")
	return n, s.explain("abandon", err)
}
