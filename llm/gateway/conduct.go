package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/observe/trace"
)

// A conduct is the way of one request to its answer.
type conduct struct {
	x        *exchange
	r        *http.Request
	send     httpx.Send
	start    time.Time
	haste    time.Duration // how long the caller says that it waits; 0 if it does not
	progress *progress

	state cache.State
	age   time.Duration
	held  cache.Entry // what the cache has
	near  float64     // how sure it is that this answers the question, if it was given to one like it; else 0

	replayed bool // and it is the answer

	unpaid error // why the caller's limits cannot be charged, if that is for the fleet's store: no model is asked

	first *http.Response // of the upstream itself, although it is no success
	probe bool           // the tier that is asked may be down: it is tried once
}

// Conduct is httpx.Conductor's: the caller is charged, then the cache is asked, then
// the tiers.
func (x *exchange) Conduct(r *http.Request, send httpx.Send) (*http.Response, error) {
	c := &conduct{x: x, r: r, send: send, start: time.Now(), progress: &progress{of: x}}
	x.progress = c.progress
	if d, said := x.patience(r.Header); d > 0 {
		c.r = r.WithContext(&until{r.Context(), c.start.Add(d)})
		c.progress.given, c.progress.last = d, true
		if c.progress.stated = said; said {
			c.haste = d
		}
	}
	x.asks(trace.CallOf(c.r.Context()))
	grant, err := x.charge(c.r.Context())
	if err != nil && !forStore(err) {
		return nil, err
	}
	c.unpaid = err
	resp, err := (*http.Response)(nil), error(nil)
	defer func() { // also after a panic
		switch {
		case resp != nil:
		case c.left():
			grant.spend(nil)
		default:
			grant.back()
		}
	}()
	if resp, err = c.answer(); err != nil {
		resp = nil
		return nil, err
	}
	own := resp.Request == nil && !c.left()
	if grant != nil {
		resp.Body = outside(&charged{ReadCloser: resp.Body, grant: grant, progress: c.progress, status: resp.StatusCode, own: own}, resp.Body)
	}
	return resp, nil
}

// forStore reports whether a limit refused a call because of the fleet's store, and not for what its caller used: the store is
// away, or does not know what was used. Then tiers that ask no model answer.
func forStore(err error) bool {
	r, ok := errors.AsType[*weir.Refusal](err)
	return ok && r.Want.Lack != limit.LacksNothing && !r.Want.Keys
}

// answer is the best answer that can be had.
func (c *conduct) answer() (*http.Response, error) {
	if resp := c.recall(); resp != nil {
		return resp, nil
	}
	if c.x.d.o.Cascade == nil || !c.x.route.Generates || c.x.request == nil {
		if c.unpaid != nil {
			return nil, c.unpaid
		}
		ctx := c.r.Context()
		if at, ok := ctx.Deadline(); ok {
			var done context.CancelFunc
			ctx, done = context.WithDeadline(ctx, at) // until it has begun
			defer done()
		}
		resp, err := c.primary(ctx)
		var bad *badAnswer
		if errors.As(err, &bad) {
			return bad.resp, nil
		}
		if err == nil {
			c.announce(resp, cascade.Result[*http.Response]{Tier: primary, Confidence: 1})
		}
		return resp, err
	}
	return c.fall()
}

// primary is the name of the tier that the upstream itself is.
const primary = "primary"

// A progress is how far a caller's request is: the tier that is asked, its attempts, and what its
// answers say they have used. It comes with the context of what is sent.
type progress struct {
	usage atomic.Pointer[map[string]int64]
	entry atomic.Pointer[cache.Entry] // the answer, if it may be kept and keep is set
	keep  bool

	of        *exchange     // of the caller
	tier      string        // that is asked; "" if there is but one
	attempts  int           // of that tier
	given     time.Duration // its time; 0 if nobody knows
	last      bool          // no other model can answer
	below     bool          // but a tier below can: a static answer, or a message
	stated    bool          // the caller states how long it waits
	worthless error         // how the latest answer ended that was no error and had no content

	by   atomic.Pointer[exchange] // the latest attempt; nil if there was none, or none of a model
	open atomic.Pointer[exchange] // the attempt that a provider has had, and neither answered nor broken off
}

// charge is what the caller is charged for an answer. What it comes to is reserved already if it
// is as much as was expected of the request; a limit that holds less has given all of it.
func (b *progress) charge(a tokens.Amounts) map[string]int64 {
	used := units(a)
	for unit, reserved := range units(tokens.Plain.Reserve(b.of.expected())) {
		if used[unit] == reserved {
			delete(used, unit)
		}
	}
	return used
}

type progressKey struct{}

func (b *progress) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, b)
}

// again counts an attempt. It is refused if the tier has been found to be down since the
// first: the next one is asked at once.
func (b *progress) again() error {
	if b.attempts++; b.attempts == 1 || b.tier == "" {
		return nil
	}
	all := b.of.d.o.Cascade
	tier := all.Breaker(b.tier)
	if tier == nil {
		return nil
	}
	if v := tier.Look(all.Now()); v.Phase == breaker.Open {
		return &weir.Refusal{Upstream: b.of.d.o.Name, Operation: b.of.route.Operation, Reason: weir.CircuitOpen, RetryAfter: v.Wait}
	}
	return nil
}

func progressOf(ctx context.Context) *progress {
	b, _ := ctx.Value(progressKey{}).(*progress)
	return b
}

// charged is the body of an answer at whose end the caller's account is settled.
type charged struct {
	io.ReadCloser
	grant    *grant
	progress *progress

	status int
	own    bool // no model gave it
	done   atomic.Bool
}

func (b *charged) Close() error {
	err := b.ReadCloser.Close()
	if b.done.Swap(true) {
		return err
	}
	switch used := b.progress.usage.Load(); {
	case b.status >= http.StatusInternalServerError || b.status == http.StatusTooManyRequests:
		b.grant.back()
	case b.own, b.status >= http.StatusBadRequest:
		b.grant.spend(nothing)
	case used != nil:
		b.grant.spend(*used)
	default:
		b.grant.spend(nil)
	}
	return err
}
