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
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/observe/trace"
)

// A conduct processes one request until it has an answer.
type conduct struct {
	x        *exchange
	r        *http.Request
	send     httpx.Send
	start    time.Time
	haste    time.Duration // the time that the caller states it waits; 0 if not stated
	progress *progress

	state cache.State
	age   time.Duration
	held  cache.Entry // the entry found in the cache
	near  float64     // similarity from 0 to 1 if the entry answers a similar question; otherwise 0

	replayed bool // the answer is from the cache

	grant  *grant // what the caller was charged
	unpaid error  // refusal of the caller's limits caused by the fleet's store: no model is called

	first *http.Response // the upstream's own unsuccessful response
	probe bool           // the tier may be down: one attempt only
}

// Conduct implements httpx.Conductor. It charges the caller, then looks in the cache, and then asks the tiers.
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
	if all := x.callers(); all != nil {
		all.begin(x.keys)
	}
	grant, err := x.charge(c.r.Context())
	if err != nil && !forStore(err) {
		x.endRun(err)
		return nil, err
	}
	c.grant, c.unpaid = grant, err
	resp, err := (*http.Response)(nil), error(nil)
	defer func() { // also after a panic
		if resp == nil || c.grant == nil {
			x.endRun(err)
		}
		switch {
		case resp != nil:
		case c.left():
			c.grant.spend(nil)
		default:
			c.grant.back()
		}
	}()
	if resp, err = c.answer(); err != nil {
		resp = nil
		return nil, err
	}
	own := resp.Request == nil && !c.left()
	if c.grant != nil {
		resp.Body = outside(&charged{ReadCloser: resp.Body, grant: c.grant, progress: c.progress, status: resp.StatusCode, own: own}, resp.Body)
	}
	return resp, nil
}

// callers returns the limits of the callers to which the request is charged; nil if there are none.
func (x *exchange) callers() *Callers {
	if x.progress != nil {
		return x.progress.of.d.o.Callers
	}
	return x.d.o.Callers
}

// endRun counts a call of a run that has ended, perhaps with an error.
func (x *exchange) endRun(err error) {
	if all := x.callers(); all != nil {
		all.end(x.keys, "", refusedBy(err))
	}
}

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
			ctx, done = context.WithDeadline(ctx, at) // ends the wait for the start of the answer
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

// primary is the name of the upstream's own tier.
const primary = "primary"

// A progress is the state of a caller's request: the current tier, its attempts, and the reported usage. The context of
// every sent request contains it.
type progress struct {
	usage atomic.Pointer[map[string]int64]
	entry atomic.Pointer[cache.Entry] // the answer, if keep is set and it can be cached
	keep  bool

	of        *exchange     // the caller's exchange
	tier      string        // current tier; "" without a cascade
	attempts  int           // attempts at the current tier
	given     time.Duration // time for the current tier; 0 if unknown
	last      bool          // no lower tier has a model
	below     bool          // there is a lower tier, possibly without a model
	stated    bool          // the caller states how long it waits
	worthless error         // error that ended the last successful response without content

	by   atomic.Pointer[exchange] // the last attempt at a model; nil if none
	open atomic.Pointer[exchange] // the attempt that a provider is processing
}

// charge returns the caller's usage for an answer. It omits units whose usage equals the reservation, because they are
// already charged. A limit smaller than the reservation has charged all it has.
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

// again counts an attempt. It returns an error if the tier's breaker has opened since the first attempt, so that the
// next tier is asked immediately.
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

// A charged is a response body that settles the caller's charge when it is closed.
type charged struct {
	io.ReadCloser
	grant    *grant
	progress *progress

	status int
	own    bool // the answer is not from a model
	done   atomic.Bool
}

func (b *charged) Close() error {
	err := b.ReadCloser.Close()
	if b.done.Swap(true) {
		return err
	}
	b.progress.of.endRun(nil)
	switch used := b.progress.usage.Load(); {
	case b.status >= http.StatusInternalServerError || b.status == http.StatusTooManyRequests:
		b.grant.back()
	case b.own, b.status >= http.StatusBadRequest:
		b.grant.spend(unbilled)
	case used != nil:
		b.grant.spend(*used)
	default:
		b.grant.spend(nil)
	}
	return err
}
