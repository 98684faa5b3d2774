package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A Behaviour describes how an upstream responds. The zero Behaviour answers every call immediately.
type Behaviour struct {
	Rate    bucket.Rate   // admitted calls, the others are throttled; zero means no limit
	Hint    bool          // a throttle contains the time until there is room
	Latency time.Duration // of a call without its work; half of it before the work
	Jitter  time.Duration // the largest random addition to the latency
	Work    time.Duration // how long a call keeps the upstream busy, one after the other, even if its caller has left
	Fails   float64       // the share of calls that fail at random
	Outages []Outage
}

// An Outage is a time in which an upstream does not work, from From until before Until.
type Outage struct {
	From, Until time.Duration
	Stall       bool // calls are kept until the end; otherwise they fail
}

// An Upstream is a simulated API. Pass its Call to weir.Do. While the world runs, only its goroutines may use an
// Upstream.
type Upstream struct {
	w      *World
	b      Behaviour
	line   bucket.Line
	state  bucket.State
	free   time.Duration // when all admitted work is done
	counts Counts
}

// Counts are the numbers of calls by result.
type Counts struct {
	Calls, OK, Throttled, Failed int64

	// Left is the number of callers that left before their response. Their calls also count by result if they had
	// arrived.
	Left int64
}

// Upstream returns an upstream. It panics if the rate is invalid.
func (w *World) Upstream(b Behaviour) *Upstream {
	u := &Upstream{w: w, b: b}
	if b.Rate != (bucket.Rate{}) {
		if err := b.Rate.Validate(); err != nil {
			panic(fmt.Sprintf("sim: rate of an upstream: %v", err))
		}
		u.line = bucket.NewLine(w.now, b.Rate)
		u.state = u.line.Fresh(w.now)
	}
	return u
}

// Counts returns the counts so far.
func (u *Upstream) Counts() Counts { return u.counts }

// An answer is a response other than a success.
type answer struct{ o outcome.Outcome }

var _ outcome.Classifier = (*answer)(nil)

func (a *answer) Error() string            { return "upstream: " + a.o.Code }
func (a *answer) Outcome() outcome.Outcome { return a.o }

// Call makes one call. It returns its number among the successes, or the cause of ctx's end, or an error that
// implements outcome.Classifier: throttled (code "throttled") or failed (code "outage" or "fault").
func (u *Upstream) Call(ctx context.Context) (int64, error) {
	u.counts.Calls++
	trip := u.b.Latency + u.chance(u.b.Jitter)
	if err := u.sleep(ctx, trip/2); err != nil {
		return 0, err
	}
	n, done, err := u.arrive()
	if left := u.sleep(ctx, done-u.w.now+trip-trip/2); left != nil {
		return 0, left
	}
	return n, err
}

// arrive returns the result of a call that arrives now, and when it is ready.
func (u *Upstream) arrive() (n int64, done time.Duration, err error) {
	now := u.w.now
	if !u.admit() {
		u.counts.Throttled++
		return 0, now, &answer{u.throttle()}
	}
	out, stalled := u.outage(now)
	if out && !stalled {
		u.counts.Failed++
		return 0, now, failed("outage")
	}
	u.free = u.working(max(u.free, now)) + u.b.Work
	if u.b.Fails > 0 && u.w.rand.Float64() < u.b.Fails {
		u.counts.Failed++
		return 0, u.free, failed("fault")
	}
	u.counts.OK++
	return u.counts.OK, u.free, nil
}

func failed(code string) error {
	return &answer{outcome.Outcome{Class: outcome.Failed, Code: code}}
}

func (u *Upstream) admit() bool {
	if u.b.Rate == (bucket.Rate{}) {
		return true
	}
	next, _, ok := u.state.Take(&u.line, u.w.now, 1)
	u.state = next
	return ok
}

func (u *Upstream) throttle() outcome.Outcome {
	o := outcome.Outcome{Class: outcome.Throttled, Code: "throttled", Undone: true}
	if u.b.Hint {
		_, wait, _ := u.state.Take(&u.line, u.w.now, 1)
		o.Hint = outcome.Hint{Said: true, After: wait}
	}
	return o
}

func (u *Upstream) outage(at time.Duration) (out, stalled bool) {
	for _, o := range u.b.Outages {
		if o.From <= at && at < o.Until {
			return true, o.Stall
		}
	}
	return false, false
}

// working returns the first instant from at on without a stall.
func (u *Upstream) working(at time.Duration) time.Duration {
	for _, o := range u.b.Outages {
		if o.Stall && o.From <= at && at < o.Until {
			return u.working(o.Until)
		}
	}
	return at
}

func (u *Upstream) chance(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(u.w.rand.Int64N(int64(most) + 1))
}

func (u *Upstream) sleep(ctx context.Context, d time.Duration) error {
	err := u.w.Clock().Sleep(ctx, d)
	if err != nil {
		u.counts.Left++
	}
	return err
}
