// Package trace creates traces of calls in OpenTelemetry's form and exports the kept traces. The spans of a call, its waits and
// its attempts are derived from the record that weir makes anyway (weir.Record), and only if the trace is kept. Other calls cost
// almost nothing.
//
//	exporter, err := otlp.NewHTTP(otlp.HTTP{URL: "http://127.0.0.1:4318/v1/traces"})
//	...
//	tracer := trace.New(trace.Options{To: exporter})
//	s3, err := weir.New("s3", policy, weir.Options{Events: tracer.Events()})
//
// The decision is made at the end of the call. Failures, and calls throttled by their upstream, are always kept. Of calls that
// weir refused, or that failed because of the caller, a fixed number a second is kept. Of the rest, one a second and 5% are kept.
// Requests sent upstream during a call can only carry the early decision: whether a successful call would be kept. A trace that
// is kept late therefore only has weir's spans.
package trace

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Options configure which traces are kept, and where they are sent.
type Options struct {
	To  Exporter
	Log *slog.Logger // receives failures of the export and its recovery; nil means no log

	Share   float64 // kept share of successful calls; 0 means 0.05, negative means none
	Each    int     // successful calls kept each second in addition to the share; 0 means 1, negative means none
	Refused int     // kept calls a second that were refused or failed because of the caller; 0 means 50

	// Trust lets callers decide, by the sampled flag that they send, whether a successful call is kept. Without Trust a set flag
	// is ignored.
	Trust bool

	XRay bool // also read and send X-Amzn-Trace-Id
	// Kept, if not nil, is called for each call whose trace will be exported, as an exemplar of call durations. It runs at the
	// end of the call and must not block.
	Kept func(Kept)

	Bytes  int64         // approximate maximum size of waiting traces; 0 means 32 MiB
	Within time.Duration // maximum delay before a kept trace is sent; 0 means a second
}

// Kept is a call whose trace is exported.
type Kept struct {
	Trace    ID
	Upstream string
	Result   string // the result in weir.Counts
	Took     time.Duration
	Ended    time.Time
}

const (
	defaultShare   = 0.05
	defaultEach    = 1
	defaultRefused = 50
	defaultBytes   = 32 << 20
	defaultWithin  = time.Second
)

// Why is the reason why a trace is kept.
type Why string

const (
	Failed    Why = "failed"    // the call or one of its attempts failed
	Throttled Why = "throttled" // the upstream throttled an attempt
	Refused   Why = "refused"   // weir refused the call
	Rejected  Why = "rejected"  // the caller's error
	Sampled   Why = "sampled"   // chosen at random
)

// whys lists all reasons, the most important first.
var whys = [...]Why{Failed, Throttled, Refused, Rejected, Sampled}

// Indexes in whys. none means that the trace is not kept.
const (
	failed = iota
	throttled
	refused
	rejected
	sampled
	none
)

// A Tracer decides which calls are kept, and exports their traces. Create one with New and end it with Close. It is safe for
// concurrent use.
type Tracer struct {
	o         Options
	threshold uint64 // a successful call is kept if a random number is below it
	seed      uint64
	each      shelf // for successful calls, by the wall clock
	others    shelf // for calls without a trace, by the upstream's clock, which refusals use as well
	refusals  shelf
	queue     *queue
}

// New returns a tracer.
func New(o Options) *Tracer {
	if o.Share == 0 {
		o.Share = defaultShare
	}
	o.Share = min(max(o.Share, 0), 1)
	if o.Each == 0 {
		o.Each = defaultEach
	}
	if o.Refused <= 0 {
		o.Refused = defaultRefused
	}
	if o.Bytes <= 0 {
		o.Bytes = defaultBytes
	}
	if o.Within <= 0 {
		o.Within = defaultWithin
	}
	t := &Tracer{o: o, threshold: uint64(o.Share * (1 << 63)), seed: rand.Uint64() | 1, queue: newQueue(&o)}
	t.each.each, t.others.each, t.refusals.each = int64(max(o.Each, 0)), int64(max(o.Each, 0)), int64(o.Refused)
	return t
}

// Close exports the waiting traces until ctx ends, and returns the number of lost traces.
func (t *Tracer) Close(ctx context.Context) (lost int) { return t.queue.close(ctx) }

// Stats returns the current counts.
func (t *Tracer) Stats() Stats { return t.queue.stats() }

// Events returns the events to pass to upstreams, so that their calls are traced.
func (t *Tracer) Events() weir.Events {
	return weir.Events{Wanted: t.might, Recorded: t.recorded}
}

// might reports whether a call may be kept. It rejects most successful calls before a record is made.
func (t *Tracer) might(_ string, note any, s weir.Sketch) bool {
	c, _ := noteOf(note)
	switch {
	case s.Refused, s.Class == outcome.Rejected:
		return t.refusals.room(s.At)
	case bad(s.Class):
		return true
	case c != nil && c.top != nil: // another call may cause its trace to be kept
		return true
	case c != nil:
		return c.sampled && !c.lasts
	}
	return t.others.room(s.At) || t.drawn(s.At)
}

// recorded keeps a call that has ended, if it is chosen. It always returns false.
func (t *Tracer) recorded(r *weir.Record) bool {
	c, isBeside := noteOf(r.Note)
	why := t.why(r, c)
	if isBeside {
		c.worsens(why)
	}
	if isBeside || why == none && (c == nil || c.top == nil) {
		return false
	}
	p := partOf(r, c, time.Now())
	switch {
	case c != nil && c.lasts:
		c.keeps(p, why)
	case c != nil && c.lone:
		t.whole(p, c, why)
	case c != nil && c.adds(p, why):
	case why != none:
		t.alone(p, c, why)
	}
	return false
}

// why returns why a call is kept, or none.
func (t *Tracer) why(r *weir.Record, c *Call) int {
	end := r.Began + r.Took
	switch worst := worstOf(r); {
	case worst <= throttled:
		return worst
	case worst < none:
		if !t.refusals.takes(end) {
			return none
		}
		return worst
	case c != nil && c.sampled && !c.lasts, c == nil && (t.others.takes(end) || t.drawn(end)):
		return sampled
	}
	return none
}

// worstOf returns the most important result of a call's attempts, none if the call succeeded.
func worstOf(r *weir.Record) int {
	worst := none
	for a := range r.Each {
		switch {
		case a.Reason != "":
		case a.Class == outcome.Throttled:
			worst = min(worst, throttled)
		case bad(a.Class):
			worst = min(worst, failed)
		}
	}
	switch {
	case worst < none:
	case r.Refused:
		return refused
	case r.Class == outcome.Rejected:
		return rejected
	}
	return worst
}

// bad reports whether an attempt failed for another reason than its caller.
func bad(c outcome.Class) bool {
	return c == outcome.Failed || c == outcome.Throttled || c == outcome.Unknown
}

// sample decides early whether a call is kept if it succeeds.
func (t *Tracer) sample(now time.Time) bool {
	return t.each.takes(time.Duration(now.UnixNano())) || t.lucky(rand.Uint64())
}

// drawn decides about a call by the time of its end. It returns the same for repeated questions about a call, and its seed is
// secret.
func (t *Tracer) drawn(at time.Duration) bool {
	x := (uint64(at) ^ t.seed) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return t.lucky(x ^ x>>32)
}

func (t *Tracer) lucky(x uint64) bool { return x>>1 < t.threshold }

// A shelf counts up to a maximum per second.
type shelf struct {
	second atomic.Int64 // the current second
	taken  atomic.Int64
	each   int64
}

// room reports whether the second of the instant has room. It writes nothing.
func (s *shelf) room(now time.Duration) bool {
	return s.each > 0 && (s.second.Load() != int64(now/time.Second) || s.taken.Load() < s.each)
}

// takes counts one more if there is room. Beyond the bound it writes nothing, so that under overload the cores do not contend for
// a cache line.
func (s *shelf) takes(now time.Duration) bool {
	if s.each <= 0 {
		return false
	}
	second := int64(now / time.Second)
	if at := s.second.Load(); at != second && s.second.CompareAndSwap(at, second) {
		s.taken.Store(0)
	}
	return s.taken.Load() < s.each && s.taken.Add(1) <= s.each
}

// milli returns a duration in milliseconds.
func milli(d time.Duration) int64 { return int64(min(d, math.MaxInt64/2) / time.Millisecond) }
