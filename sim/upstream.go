package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A Behaviour is how an upstream answers. The zero Behaviour answers everything
// at once.
type Behaviour struct {
	Rate    bucket.Rate   // calls that it lets in, the rest is throttled; zero means all
	Hint    bool          // a throttle says when there is room again
	Latency time.Duration // of a call, half of it on the way there, without the work
	Jitter  time.Duration // the most that chance adds to that
	Work    time.Duration // a call keeps the upstream busy for so long, one after the other, even if its caller has left
	Fails   float64       // the share of calls that fail by chance
	Outages []Outage
}

// An Outage is a time in which an upstream does not do its work: from From, up
// to but not at Until.
type Outage struct {
	From, Until time.Duration
	Stall       bool // it keeps what comes until the end; otherwise it fails it
}

// An Upstream is an API that is only played. Give its Call to weir.Do.
type Upstream struct {
	w      *World
	b      Behaviour
	line   bucket.Line
	state  bucket.State
	free   time.Duration // when all work that was let in is done
	counts Counts
}

// Counts is how many calls an upstream had and what it did with them.
type Counts struct {
	Calls, OK, Throttled, Failed int64

	// Left is how many callers went before their answer came. What was done for
	// them counts among the others too, if their call had arrived.
	Left int64
}

// Upstream makes an upstream. It panics if the rate is not a valid one.
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

// Counts is what happened so far.
func (u *Upstream) Counts() Counts { return u.counts }

// An answer is one that is not a success.
type answer struct{ o outcome.Outcome }

var _ outcome.Classifier = (*answer)(nil)

func (a *answer) Error() string            { return "upstream: " + a.o.Code }
func (a *answer) Outcome() outcome.Outcome { return a.o }

// Call is one call. It returns its number among the successes, or the cause of
// ctx's end, or an error that implements outcome.Classifier: throttled (code
// "throttled") or failed (code "outage" or "fault").
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

// arrive is what the upstream does with a call, and when that is done.
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

// working is the first instant from at on that is in no stall.
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
