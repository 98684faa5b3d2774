package decide

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// An acquireAnswer is the response body with a permit.
type acquireAnswer struct {
	Permit    string      `json:"permit"`
	ExpiresAt time.Time   `json:"expires_at"`
	WaitedMS  int64       `json:"waited_ms"`
	Limits    []limitView `json:"limits"`
}

func (s *Server) acquire(r *http.Request, caller string) (any, *refuse.Facts) {
	o, f := read(r)
	if f != nil {
		return nil, f
	}
	if find(o, "calls") != nil {
		return s.acquireAll(r, o, caller)
	}
	q, f := decodeAcquire(o, "", s.maxWait())
	if f != nil {
		return nil, f
	}
	a, f := s.asker(caller, q, time.Now())
	if f != nil {
		return nil, f
	}
	a.came = r
	h, f := s.permit(r.Context(), a)
	if f != nil {
		return nil, f
	}
	return a.answer(h), nil
}

func (a *asker) answer(h *held) acquireAnswer {
	return acquireAnswer{h.id, h.until.Truncate(time.Millisecond).UTC(), h.waited.Milliseconds(), a.levels(h.levels, time.Now())}
}

// asker returns the acquire of a request, if the caller may make it.
func (s *Server) asker(caller string, q *acquireRequest, from time.Time) (*asker, *refuse.Facts) {
	u, f := s.upstream(caller, q.Upstream)
	if f != nil {
		return nil, f
	}
	var scopes Scopes
	if s.Scopes != nil {
		scopes = s.Scopes(q.Upstream)
	}
	policy := u.Policy()
	if f := q.check(&policy, scopes, caller); f != nil {
		return nil, f
	}
	a := &asker{s: s, u: u, policy: &policy, q: q, caller: caller, rights: s.rights(caller), scopes: scopes, from: from}
	if q.Keys, f = a.rights.fit(q.Keys); f != nil {
		return nil, f
	}
	q.Keys = scopes.name(s.veil(q.Keys), caller)
	return a, nil
}

// upstream returns the named upstream, if the caller may use it. Otherwise the response does not reveal whether the
// upstream exists.
func (s *Server) upstream(caller, name string) (*weir.Upstream, *refuse.Facts) {
	if err := s.auth().May(caller, name); err != nil {
		return nil, failed(http.StatusForbidden, refuse.Forbidden, "%v", err)
	}
	if u := s.Upstreams()[name]; u != nil {
		return u, nil
	}
	return nil, failed(http.StatusNotFound, refuse.NotFound, "upstream %s: is unknown", quoted(name))
}

// An asker is an acquire in progress.
type asker struct {
	s      *Server
	u      *weir.Upstream
	policy *weir.Policy // the upstream's when the request arrived
	q      *acquireRequest
	caller string
	rights *Rights // nil for anonymous callers
	scopes Scopes
	from   time.Time
	came   *http.Request
}

func (a *asker) about() Subject {
	return Subject{Caller: a.caller, Upstream: a.u.Name(), Operation: operation(a.policy, a.q.Operation)}
}

// permit claims a slot and requests a permit. If another acquire of the same call has a permit or waits for one,
// permit returns that permit.
func (s *Server) permit(ctx context.Context, a *asker) (*held, *refuse.Facts) {
	if err := s.permits().begin(a.caller, a.rights, a.q.marks()); err != nil {
		return nil, a.unclaimed(err)
	}
	defer s.permits().answered(a.caller, a.rights)
	key := call{a.caller, a.u.Name(), a.q.ID}
	var print [sha256.Size]byte // distinguishes different requests with the same id
	if key.id != "" {
		print = a.q.print()
	}
	for {
		at, h, mine, err := s.permits().claim(key, print, a.rights)
		switch {
		case err != nil:
			return nil, a.unclaimed(err)
		case h != nil:
			return h, nil
		case mine:
			return a.acquire(ctx, at)
		}
		if f := a.join(ctx, at); f != nil {
			return nil, f
		}
	}
}

// unclaimed returns the response to an acquire without a slot.
func (a *asker) unclaimed(err error) *refuse.Facts {
	switch {
	case errors.Is(err, errAnother):
		var wrong mistakes
		wrong.add("id", a.q.ID, "%v", err)
		return wrong.failure()
	case errors.Is(err, errClosed):
		return a.unavailable(weir.ShuttingDown, "%v", err)
	case errors.Is(err, errPermits):
		return a.excess(tooManyPermits, "permits", time.Second, err)
	case errors.Is(err, errWaiting):
		return a.excess(tooManyWaiting, "waiting", time.Second, err)
	case errors.Is(err, errKeys):
		return a.excess(tooManyKeys, "keys", time.Minute, err)
	}
	a.s.turned("full")
	return a.unavailable(tooManyPermits, "%v", err)
}

// excess returns the response to a caller that has reached one of its limits.
func (a *asker) excess(reason weir.Reason, why string, after time.Duration, err error) *refuse.Facts {
	a.s.turned(why)
	f := a.unavailable(reason, "%v", err)
	f.Status, f.Code, f.Wait = http.StatusTooManyRequests, refuse.RateLimitExceeded, after
	f.Details["retry_after_ms"] = after.Milliseconds()
	return f
}

// join waits for the end of another acquire, as long as the caller would wait for its own.
func (a *asker) join(ctx context.Context, at *claim) *refuse.Facts {
	t := time.NewTimer(a.patience() + slack)
	defer t.Stop()
	select {
	case <-at.done:
		return nil
	case <-ctx.Done():
		panic(http.ErrAbortHandler) // the caller has disconnected
	case <-t.C:
	}
	f := a.unavailable(stillWaiting, "id %s: another acquire of the call is still waiting for its turn", quoted(a.q.ID))
	f.Status, f.Code = http.StatusTooManyRequests, refuse.RateLimitExceeded
	return f
}

// acquire asks the upstream's gates for a permit, and stores it in its slot.
func (a *asker) acquire(ctx context.Context, at *claim) (_ *held, f *refuse.Facts) {
	kept := false
	defer func() { // also if a gate panics
		if !kept {
			a.s.permits().give(at)
		}
	}()
	own, f := a.admit()
	if f != nil {
		return nil, f
	}
	p, err := a.ask(ctx)
	if err != nil {
		own.report(a.u, unused, false)
		return nil, a.refused(ctx, err)
	}
	h := &held{permit: p, levels: p.Levels(), upstream: a.u, about: a.about(), own: own, waited: time.Since(a.from)}
	if !a.rights.believed() {
		h.pool = a.q.pool(a.caller)
	}
	if ctx.Err() != nil && a.q.ID == "" { // no caller could ever name this permit
		h.end(unused)
		panic(http.ErrAbortHandler)
	}
	if kept = a.s.permits().hold(at, h, a.q.Life); !kept {
		h.end(unused)
		return nil, a.unclaimed(errClosed)
	}
	tell(a.s.Events.Acquired, Acquired{h.about, h.waited})
	return h, nil
}

// end reports the end of a permit to the caller's own breaker and to the gates.
func (h *held) end(o outcome.Outcome) {
	h.own.report(h.upstream, o, false)
	h.permit.Report(o)
}

// ask requests a permit, waiting as long as the caller still waits.
func (a *asker) ask(ctx context.Context) (*weir.Permit, error) {
	p := newPatience(ctx, a.from.Add(a.q.Wait))
	defer p.end()
	c := a.q.call()
	c.Keys = a.scopes.flow(c.Keys, a.caller)
	if room := connlimit.RoomOf(ctx); room != nil {
		c.WaitingRoom = room
	}
	if a.s.Traced != nil {
		c.Note = a.s.Traced(a.came, a.u.Name())
	}
	if !a.rights.believed() {
		c.Pool, c.Flow = a.q.pool(a.caller), a.turn()
	}
	return a.u.Acquire(p, c)
}

// turn returns the flow in which a call waits. It is the caller's own, not a name that the caller chooses: a thousand
// names would get a thousand turns. "" means the flow of the names that the configuration assigns to the caller.
func (a *asker) turn() string {
	by := a.policy.Fair.By
	if a.scopes.Model && by == waiter {
		by = user
	}
	if _, given := a.rights.Keys[by]; given {
		return ""
	}
	return a.caller
}

// patience returns how long the caller will still wait.
func (a *asker) patience() time.Duration { return max(0, time.Until(a.from.Add(a.q.Wait))) }

// refused returns the response to an acquire without a permit.
func (a *asker) refused(ctx context.Context, err error) *refuse.Facts {
	refusal, ok := errors.AsType[*weir.Refusal](err)
	switch {
	case ctx.Err() != nil:
		panic(http.ErrAbortHandler) // the caller has disconnected
	case ok:
		return a.refusal(refusal)
	case errors.Is(err, weir.ErrTooMuch):
		return failed(http.StatusBadRequest, refuse.ValidationError, "cost: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return a.refusal(&weir.Refusal{Upstream: a.u.Name(), Operation: a.about().Operation, Reason: weir.RateLimited, RetryAfter: time.Second})
	}
	a.s.log().LogAttrs(ctx, slog.LevelWarn, "no decision", slog.String("upstream", a.u.Name()), slog.String("error", err.Error()))
	return a.unavailable(undecided, "upstream %s: no decision was possible; repeat the request", a.u.Name())
}
