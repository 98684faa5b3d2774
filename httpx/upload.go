package httpx

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/pace"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// patience bounds the time to wait for the caller's body, if the body may be sent more than once. Its fields are set before the
// body is read.
type patience struct {
	idle time.Duration // for any byte; 0 or less means no bound
	body time.Duration // for the complete body

	// Guarded by replay.mu.
	pace  pace.Pace               // the minimum rate
	slot  *weir.Slot              // of the current attempt; nil without a slot, or once it is answered
	probe *weir.Probe             // of the current attempt; nil if no breaker waits for it
	left  bool                    // the slot and the probe are given up while the body is awaited
	end   context.CancelCauseFunc // of the current attempt
	until time.Time               // deadline of the complete body; zero until it is read
	since time.Time               // start of the current read
	due   time.Time               // when the current read has taken too long; zero if never
	spent time.Duration           // on previous reads
	late  error                   // why the body is too late
	timer *time.Timer
}

// await bounds the time to wait for a request's body. The body of a stream has no bound.
func (p *replay) await(t weir.Timeouts, h http.Header, stream bool) {
	if p == nil || isGRPC(h) {
		return
	}
	if p.wait.body = t.Body; !stream {
		p.wait.idle, p.wait.pace = t.UploadIdle, pace.New(t.UploadRate, t.UploadOver, t.UploadIdle)
	}
}

// attempt passes the body to an attempt, until its context ends. After a long wait for the body, the attempt gives up its slot, and
// the probe of a breaker, to another attempt, because the upstream has nothing to work on yet. When the body is complete, the attempt counts as in flight
// again, even if there is no free slot.
func (p *replay) attempt(ctx context.Context, end context.CancelCauseFunc, run *weir.Run) {
	if p == nil || p.direct {
		return
	}
	r, slot := p.last.Load(), run.Slot()
	p.mu.Lock()
	p.wait.end, p.wait.slot, p.wait.left = end, slot, false
	p.wait.probe = run.Probe()
	if p.wait.holds() && !p.wait.since.IsZero() { // a read for the previous attempt continues
		p.alarm(time.Now())
	}
	p.mu.Unlock()
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.over = true
		p.read.Broadcast()
	})
}

// answered is called when the attempt has its response or has failed: its slot no longer changes.
func (p *replay) answered() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait.slot, p.wait.probe = nil, nil
}

// holds reports whether there is a slot or a probe to give up. The caller holds mu.
func (w *patience) holds() bool { return (w.slot != nil || w.probe != nil) && !w.left }

// yields gives up both. The caller must call free, without holding mu.
func (w *patience) yields() (free func()) {
	w.left = true
	slot, probe := func() {}, w.probe
	if w.slot != nil {
		slot = w.slot.Yield()
	}
	return func() {
		if slot(); probe != nil {
			probe.Release()
		}
	}
}

// whole marks the attempt as in flight again, because the upstream now has the complete body. The caller holds mu.
func (w *patience) whole() {
	if w.slot != nil && w.left {
		w.slot.Retake()
	}
}

// begins starts the time for a read of the caller's body. The caller holds mu.
func (p *replay) begins() {
	p.reading = true
	w := &p.wait
	w.since, w.due = time.Now(), time.Time{}
	if w.body > 0 && w.until.IsZero() {
		w.until = w.since.Add(w.body)
	}
	if w.idle > 0 {
		w.due = w.since.Add(w.idle)
	}
	if at := w.since.Add(w.pace.Left()); w.pace.Bounds() && (w.due.IsZero() || at.Before(w.due)) {
		w.due = at
	}
	if w.body > 0 && (w.due.IsZero() || w.until.Before(w.due)) {
		w.due = w.until
	}
	p.alarm(w.since)
}

// alarm sets the timer for the next event: giving up the slot, or the body. The caller holds mu.
func (p *replay) alarm(now time.Time) {
	w := &p.wait
	at := w.due
	if lay := w.since.Add(mostBerthed - w.spent); w.holds() && (at.IsZero() || lay.Before(at)) {
		at = lay
	}
	switch d := max(1, at.Sub(now)); {
	case at.IsZero():
	case w.timer == nil:
		w.timer = time.AfterFunc(d, p.rings)
	default:
		w.timer.Reset(d)
	}
}

// rings handles an event of the timer, after the caller's body has been awaited for long.
func (p *replay) rings() {
	p.mu.Lock()
	w, now := &p.wait, time.Now()
	if w.since.IsZero() { // the bytes arrived at the last moment
		p.mu.Unlock()
		return
	}
	if !w.due.IsZero() && !now.Before(w.due) {
		p.tooLate(now)
		return
	}
	free := func() {}
	if w.holds() && w.spent+now.Sub(w.since) >= mostBerthed {
		free = w.yields()
	}
	p.alarm(now)
	p.mu.Unlock()
	free()
}

// ends stops the time of a read, after n bytes have arrived. The caller holds mu.
func (p *replay) ends(n int) {
	p.reading = false
	took := time.Since(p.wait.since)
	p.wait.spent += took
	p.wait.pace.Came(n, took)
	if p.wait.since = (time.Time{}); p.wait.timer != nil {
		p.wait.timer.Stop()
	}
}

// waited returns the total time of waiting for the caller's body.
func (p *replay) waited() time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := &p.wait; !w.since.IsZero() {
		return w.spent + time.Since(w.since)
	}
	return p.wait.spent
}

// times ends an attempt at its timeout. The time of waiting for the caller's body only counts for the call.
func (s *sender) times(a *attempt) *expiry {
	d, why := s.run.Timeout()
	if s.replay == nil {
		return s.t.expiry(d, why, a.cancel)
	}
	s.replay.expiry = expiry{timer: s.replay.times(s.run, d, why, a.cancel), once: true}
	return &s.replay.expiry
}

// times ends an attempt after d, not counting the time of waiting for the body. The error is why.
func (p *replay) times(r *weir.Run, d time.Duration, why error, cancel context.CancelCauseFunc) (timer *time.Timer) {
	before := p.waited()
	timer = time.AfterFunc(bucket.Never, func() {
		more := p.waited() - before
		before += more
		left := r.Left()
		if why == weir.ErrCallTimeout || more <= 0 || left <= 0 {
			cancel(why)
			return
		}
		if more >= left {
			why, more = weir.ErrCallTimeout, left
		}
		timer.Reset(more)
	})
	timer.Reset(d)
	return timer
}

// tooLate ends the attempt that waits for the caller's body, and prevents further ones. It releases mu.
func (p *replay) tooLate(now time.Time) {
	w := &p.wait
	switch {
	case !w.until.IsZero() && !now.Before(w.until):
		w.late = ErrBodyTimeout
	case w.idle > 0 && now.Sub(w.since) >= w.idle:
		w.late = ErrRequestStalled
	default:
		w.late = ErrRequestSlow
	}
	end, why := w.end, w.late
	p.mu.Unlock()
	if end != nil {
		end(why)
	}
}

// brokenBody is the code of an attempt that failed because of its caller's own body.
const brokenBody = "request body"

// mostBlamed is the time of waiting for the caller's body from which a timeout of the attempt counts as the caller's fault.
const mostBlamed = time.Second

// mostBerthed is how long an attempt keeps its slot while it waits for its caller's body. Calls wait for a slot for at most a
// second, so a series of slow uploads in all slots does not block other calls.
const mostBerthed = 250 * time.Millisecond

// failure returns why the caller's own body made an attempt fail, nil if it did not.
func (p *replay) failure(cause error) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.wait
	switch {
	case w.late != nil:
		return fmt.Errorf("%w: %w", ErrRequestBody, w.late)
	case cause != nil && !w.since.IsZero() && time.Since(w.since) >= mostBlamed:
		return fmt.Errorf("%w: %w: %w", ErrRequestBody, ErrRequestStalled, cause) // waited for until the attempt's timeout
	}
	return nil
}
