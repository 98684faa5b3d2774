package weir

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// patience is how long the caller's body is waited for, of one that may be sent more than
// once. Its fields are set before it is read.
type patience struct {
	idle time.Duration // for anything; 0 or less if there is no bound
	body time.Duration // for all of it

	// Under replay.mu.
	end   context.CancelCauseFunc // of the present attempt
	until time.Time               // when all of it must be there; zero until it is read
	since time.Time               // when the read that is under way began
	spent time.Duration           // on those before
	late  error                   // it did not come in time
	timer *time.Timer
}

// await bounds how long the body of a request is waited for.
func (p *replay) await(t Timeouts, h http.Header) {
	if p != nil && !isGRPC(h) {
		p.wait.idle, p.wait.body = t.Idle, t.Body
	}
}

// attempt gives the body to an attempt, until its context ends.
func (p *replay) attempt(ctx context.Context, end context.CancelCauseFunc) {
	if p == nil || p.direct {
		return
	}
	r := p.last.Load()
	p.mu.Lock()
	p.wait.end = end
	p.mu.Unlock()
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.over = true
		p.read.Broadcast()
	})
}

// begins starts the time for a read of the caller's body. The lock is held.
func (p *replay) begins() {
	p.reading = true
	w := &p.wait
	w.since = time.Now()
	if w.body > 0 && w.until.IsZero() {
		w.until = w.since.Add(w.body)
	}
	d := w.idle
	if w.body > 0 && (d <= 0 || w.until.Sub(w.since) < d) {
		d = max(1, w.until.Sub(w.since))
	}
	switch {
	case d <= 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(d, p.tooLate)
	default:
		w.timer.Reset(d)
	}
}

// ends stops it. The lock is held.
func (p *replay) ends() {
	p.reading = false
	p.wait.spent += time.Since(p.wait.since)
	if p.wait.since = (time.Time{}); p.wait.timer != nil {
		p.wait.timer.Stop()
	}
}

// waited is how long the caller's body has been waited for so far.
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

// times ends an attempt at its timeout. The time in which the caller's body is waited for is
// not the attempt's, but it is the call's.
func (s *sender) times(cancel context.CancelCauseFunc) (timer *time.Timer) {
	r := &s.run
	why, end := r.timeout(), r.deadline
	before := s.replay.waited()
	timer = time.AfterFunc(bucket.Never, func() {
		more := s.replay.waited() - before
		before += more
		left := end - r.u.clock.Now()
		if why == ErrCallTimeout || more <= 0 || left <= 0 {
			cancel(why)
			return
		}
		if more >= left {
			why, more = ErrCallTimeout, left
		}
		timer.Reset(more)
	})
	timer.Reset(r.until - r.permit.sent)
	return timer
}

// tooLate ends the attempt that waits for the caller's body, and all that would follow.
func (p *replay) tooLate() {
	p.mu.Lock()
	w := &p.wait
	if w.since.IsZero() { // it came at the last moment
		p.mu.Unlock()
		return
	}
	w.late = ErrRequestStalled
	if !w.until.IsZero() && !time.Now().Before(w.until) {
		w.late = ErrBodyTimeout
	}
	end, why := w.end, w.late
	p.mu.Unlock()
	if end != nil {
		end(why)
	}
}

// mostBlamed is how long the caller's body must have been waited for when an attempt has
// taken too long, for that to be the caller's fault.
const mostBlamed = time.Second

// failure is why the caller's own body kept an attempt from its end, nil if it did not.
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
		return fmt.Errorf("%w: %w", ErrRequestBody, ErrRequestStalled) // it was waited for until the attempt's time was up
	}
	return nil
}
