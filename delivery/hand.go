package delivery

import (
	"context"
	"errors"
	"slices"
)

// Redrive queues up to most dead letters again. See Queue.
func (w *Worker) Redrive(ctx context.Context, f Filter, most int) (int, error) {
	return w.byHand(ctx, f, most, w.Queue.Redrive, func(upstream string, _ int) {
		if w.Sender(upstream) != nil {
			w.Kick(upstream)
		}
	})
}

// Drop makes dead letters of up to most waiting deliveries, or deletes dead letters. See Queue.
func (w *Worker) Drop(ctx context.Context, f Filter, most int) (int, error) {
	if f.All() { // the queue refuses this filter, but would accept it with an upstream added
		return w.Queue.Drop(ctx, f, most)
	}
	return w.byHand(ctx, f, most, w.Queue.Drop, func(upstream string, n int) {
		if f.Status != Failed {
			w.dead(upstream, Dropped, n)
			if w.Sender(upstream) != nil {
				w.Kick(upstream) // later deliveries of its order key may now be due
			}
		}
	})
}

// byHand calls do for each upstream, and tell for each upstream with changes.
func (w *Worker) byHand(ctx context.Context, f Filter, most int, do func(context.Context, Filter, int) (int, error), tell func(upstream string, n int)) (done int, err error) {
	upstreams := []string{f.Upstream}
	if f.Upstream == "" {
		counts, err := w.Queue.Counts(ctx)
		if err != nil {
			return 0, err
		}
		upstreams = upstreams[:0]
		for _, c := range counts {
			upstreams = append(upstreams, c.Upstream)
		}
		upstreams = slices.Compact(upstreams)
	}
	var errs []error
	for _, f.Upstream = range upstreams {
		if done >= most {
			break
		}
		n, err := do(ctx, f, most-done)
		if done += n; n > 0 {
			tell(f.Upstream, n)
		}
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}
