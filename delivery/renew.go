package delivery

import (
	"context"
	"time"
)

// work is a claim that this worker holds. Its attempt ends a margin before the lease does.
type work struct {
	claim Claim
	since time.Time
	end   *time.Timer
	lose  context.CancelCauseFunc
	over  bool // the attempt has ended but is not recorded yet
}

// begin adds a claim and schedules lose for a margin before its lease ends.
func (w *Worker) begin(c Claim, since time.Time, lose context.CancelCauseFunc) *work {
	h := &work{claim: c, since: since, lose: lose}
	h.end = time.AfterFunc(time.Until(since.Add(w.Lease-w.Margin)), func() { lose(errLease) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works[c] = h
	return h
}

// outlives keeps the lease renewed until the end of the attempt is recorded, without a time limit.
func (w *Worker) outlives(h *work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.over = true
}

func (w *Worker) release(h *work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.works, h.claim)
	h.end.Stop()
}

// renews extends the leases of all claims of the worker while it runs or holds any.
func (w *Worker) renews(ctx context.Context) {
	for w.rest(ctx, w.Lease/3) {
		w.renew()
	}
	for w.working() && w.rest(w.hard, min(w.Lease/3, time.Second)) {
		w.renew()
	}
}

func (w *Worker) working() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.works) > 0
}

// renew extends all leases in one call to the queue. Leases of attempts that take longer than Longest are not extended.
func (w *Worker) renew() {
	now := time.Now()
	w.mu.Lock()
	var claims []Claim
	for c, h := range w.works {
		if h.over || now.Sub(h.since) < w.Longest {
			claims = append(claims, c)
		}
	}
	w.mu.Unlock()
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.hard, w.Lease/3)
	defer cancel()
	lost, err := w.Queue.Renew(ctx, w.Lease, claims...)
	if err != nil { // the leases expire unless the next renewal succeeds
		w.failed(ctx, "renew", "", err)
		return
	}
	gone := make(map[Claim]bool, len(lost))
	for _, c := range lost {
		gone[c] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range claims {
		switch h := w.works[c]; {
		case h == nil: // it has ended meanwhile
		case gone[c]:
			h.lose(errLease)
		default:
			h.end.Reset(time.Until(now.Add(w.Lease - w.Margin)))
		}
	}
}
