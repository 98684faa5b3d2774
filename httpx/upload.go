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

// patience is how long the caller's body is waited for, of one that may be sent more than
// once. Its fields are set before it is read.
type patience struct {
	idle time.Duration // for anything; 0 or less if there is no bound
	body time.Duration // for all of it

	// Under replay.mu.
	pace  pace.Pace               // at which it must come
	slot  *weir.Slot              // of the present attempt; nil if it has none, or is answered
	left  bool                    // the slot is given up while the body is waited for
	end   context.CancelCauseFunc // of the present attempt
	until time.Time               // when all of it must be there; zero until it is read
	since time.Time               // when the read that is under way began
	due   time.Time               // when it has taken too long; zero if never
	spent time.Duration           // on those before
	late  error                   // it did not come in time
	timer *time.Timer
}

// await bounds how long the body of a request is waited for. One that is a stream may come as it likes.
func (p *replay) await(t weir.Timeouts, h http.Header, stream bool) {
	if p == nil || isGRPC(h) {
		return
	}
	if p.wait.body = t.Body; !stream {
		p.wait.idle, p.wait.pace = t.UploadIdle, pace.New(t.UploadRate, t.UploadOver, t.UploadIdle)
	}
}

// attempt gives the body to an attempt, until its context ends. While the body has been waited for
// for long the attempt's slot is somebody else's: the upstream has nothing to work on yet. When all
// of the body is there it is in flight again, whether there is a slot or not.
func (p *replay) attempt(ctx context.Context, end context.CancelCauseFunc, run *weir.Run) {
	if p == nil || p.direct {
		return
	}
	r, slot := p.last.Load(), run.Slot()
	p.mu.Lock()
	p.wait.end, p.wait.slot, p.wait.left = end, slot, false
	if slot != nil && !p.wait.since.IsZero() { // a read of the attempt before goes on
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

// answered says that the attempt has its answer, or none will come: its slot is what it is.
func (p *replay) answered() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait.slot = nil
}

// holds reports whether there is a slot to give up. The lock is held.
func (w *patience) holds() bool { return w.slot != nil && !w.left }

// whole puts the attempt in flight again: the upstream has all of the body now. The lock is held.
func (w *patience) whole() {
	if w.slot != nil && w.left {
		w.slot.Retake()
	}
}

// begins starts the time for a read of the caller's body. The lock is held.
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

// alarm sets the timer for what comes next: the slot is given up, or the body. The lock is held.
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

// rings is called when the caller's body has been waited for so long that something must be done.
func (p *replay) rings() {
	p.mu.Lock()
	w, now := &p.wait, time.Now()
	if w.since.IsZero() { // it came at the last moment
		p.mu.Unlock()
		return
	}
	if !w.due.IsZero() && !now.Before(w.due) {
		p.tooLate(now)
		return
	}
	free := func() {}
	if w.holds() && w.spent+now.Sub(w.since) >= mostBerthed {
		free, w.left = w.slot.Yield(), true
	}
	p.alarm(now)
	p.mu.Unlock()
	free()
}

// ends stops it, as so many bytes have come. The lock is held.
func (p *replay) ends(n int) {
	p.reading = false
	took := time.Since(p.wait.since)
	p.wait.spent += took
	p.wait.pace.Came(n, took)
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
func (s *sender) times(a *attempt) *expiry {
	d, why := s.run.Timeout()
	if s.replay == nil {
		return s.t.expiry(d, why, a.cancel)
	}
	s.replay.expiry = expiry{timer: s.replay.times(s.run, d, why, a.cancel), once: true}
	return &s.replay.expiry
}

// times ends an attempt with the body after d, and why, but for the time in which the body is waited for.
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

// tooLate ends the attempt that waits for the caller's body, and all that would follow. It gives up the lock.
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

// brokenBody is the code of an attempt that its caller's own body kept from its end.
const brokenBody = "request body"

// mostBlamed is how long the caller's body must have been waited for when an attempt has
// taken too long, for that to be the caller's fault.
const mostBlamed = time.Second

// mostBerthed is how long an attempt keeps its slot in which its caller's body is waited for. Who waits
// for a slot waits for a second at most: slow uploads that take all of them, and again those that
// become free, keep nobody else out.
const mostBerthed = 250 * time.Millisecond

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
		return fmt.Errorf("%w: %w: %w", ErrRequestBody, ErrRequestStalled, cause) // it was waited for until the attempt's time was up
	}
	return nil
}
