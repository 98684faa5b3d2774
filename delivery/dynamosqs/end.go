package dynamosqs

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// End records how attempts ended.
func (s *Store) End(ctx context.Context, ends ...delivery.End) (lost []delivery.Claim, err error) {
	all := make([]delivery.End, len(ends))
	for i, e := range ends {
		if all[i], err = stored.Ending(e); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), asking)
	defer cancel()
	w := s.work()
	defer w.done(ctx)
	kept := make([]bool, len(all))
	for i := range all { // one after the other, because two may concern the same delivery
		if kept[i], err = s.end(ctx, w, &all[i]); err != nil {
			return nil, s.explain("record", err)
		}
	}
	for i, e := range all {
		if !kept[i] {
			lost = append(lost, e.Claim)
		}
	}
	return lost, nil
}

// end records one End. It returns false if the claim was lost. What follows is left to a sweep if it fails.
func (s *Store) end(ctx context.Context, w *work, e *delivery.End) (bool, error) {
	r, changed, err := w.change(ctx, e.Seq, func(r *record) bool {
		if r.Status != delivery.Processing || r.Fence != e.Fence {
			return false
		}
		back := e.GiveBack && e.To == delivery.Queued
		if e.Attempt != nil {
			r.ended(e.Attempt, !back)
		}
		if back {
			r.Attempts--
		}
		at := now()
		r.Status, r.Reason, r.Detail = e.To, e.Reason, octets(e.Detail)
		r.Lease, r.Worker, r.Stalls, r.Changed, r.Due = 0, "", 0, at, max(at, stored.Milli(e.Due))
		r.after()
		return true
	})
	switch {
	case err != nil || r == nil:
		return false, err
	case !changed: // the caller may repeat a call whose response was lost; but a lost claim was ended by a sweep, which counts a stall, or has been followed by another fence
		return e.Again && r.Status != delivery.Processing && r.Fence == e.Fence && r.Stalls == 0, nil
	}
	s.then(ctx, w, r)
	return true, nil
}

// ended stores an attempt as the latest one.
func (r *record) ended(a *delivery.Attempt, counted bool) {
	r.Last = &attempt{N: r.Starts, Series: r.Series, Began: r.Began, Took: a.Took.Milliseconds(), Status: a.Status, Class: a.Class.String(),
		Code: octets(a.Code), Answer: a.Answer, Counted: counted}
}

// after sets what must follow a change of status.
func (r *record) after() {
	r.Nudge, r.Follow = 0, 0
	switch {
	case r.Status == delivery.Queued:
		r.nudges()
	case r.line() != "" && !r.inLine():
		r.Follow = r.Changed + following
	}
}

// then does what follows a change. If it fails, a sweep does it.
func (s *Store) then(ctx context.Context, w *work, r *record) {
	if r.Follow != 0 {
		_ = s.follow(ctx, w, r)
	}
	if r.Status == delivery.Queued {
		s.wake(r)
	}
}
