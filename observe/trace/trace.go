// Package trace makes traces of calls, in OpenTelemetry's form, and sends those that are kept. The spans of a call,
// its waits and its attempts, are made from the one record that the call has anyway (weir.Record), and only if it is kept;
// so a call that is not costs next to nothing.
//
//	exporter, err := otlp.NewHTTP(otlp.HTTP{URL: "http://127.0.0.1:4318/v1/traces"})
//	...
//	tracer := trace.New(trace.Options{To: exporter})
//	s3, err := weir.New("s3", policy, weir.Options{Events: tracer.Events()})
//
// That is decided at the call's end: what failed, or was throttled by its upstream, is kept always; what weir refused, and
// what was the caller's fault, so many a second; of the rest one each second and 5%. What is sent upstream while the
// call is under way can carry only what is known by then: whether it is one of the rest that are kept. A trace that is
// kept late has therefore weir's own spans alone.
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

// Options say what is kept, and where it goes.
type Options struct {
	To  Exporter
	Log *slog.Logger // hears when traces cannot be exported, and when they can again; nil for nobody

	Share   float64 // of the calls that went well; 0 means 0.05, less than 0 means none
	Each    int     // of them that are kept each second before there is a share of the rest; 0 means 1, less than 0 none
	Refused int     // calls that are kept a second of those that were refused, or the caller's fault; 0 means 50

	// Trust has callers decide whether their calls are among those that went well and are kept: the sampled flag of
	// what they send. Without it a flag that is set says nothing.
	Trust bool

	XRay bool // X-Amzn-Trace-Id is read and sent, too
	// Kept hears of each call whose trace is to be exported, as an exemplar of how long calls take; nil for nobody. It is called
	// where the call ends, and must not wait.
	Kept func(Kept)

	Bytes  int64         // what may wait to be exported, about; 0 means 32 MiB
	Within time.Duration // after which what is kept is on its way; 0 means a second
}

// Kept is a call whose trace is exported.
type Kept struct {
	Trace    ID
	Upstream string
	Result   string // as weir.Counts has it
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

// Why is why a trace is kept.
type Why string

const (
	Failed    Why = "failed"    // the call, or one of its attempts
	Throttled Why = "throttled" // one of its attempts, by the upstream
	Refused   Why = "refused"   // by weir
	Rejected  Why = "rejected"  // the caller's fault
	Sampled   Why = "sampled"   // none of these
)

// whys are all there are, the more important first.
var whys = [...]Why{Failed, Throttled, Refused, Rejected, Sampled}

// The places of whys; none is kept if it is not.
const (
	failed = iota
	throttled
	refused
	rejected
	sampled
	none
)

// A Tracer decides which calls are kept, and sends their traces. Make one with New and end it with Close. It is safe
// for concurrent use.
type Tracer struct {
	o         Options
	threshold uint64 // of a random number, under which a call that went well is kept
	seed      uint64
	each      shelf // of calls that go well, by the wall clock
	others    shelf // of those that nobody told a trace of, by the upstream's clock, as refusals are
	refusals  shelf
	queue     *queue
}

// New makes a tracer.
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

// Close exports what waits until ctx ends, and says how many traces were left.
func (t *Tracer) Close(ctx context.Context) (lost int) { return t.queue.close(ctx) }

// Stats are what has become of the traces so far.
func (t *Tracer) Stats() Stats { return t.queue.stats() }

// Events is what to give to upstreams, so that their calls are traced.
func (t *Tracer) Events() weir.Events {
	return weir.Events{Wanted: t.might, Recorded: t.recorded}
}

// might reports whether a call may be kept. Nearly all that go well are told apart here, before there is a record.
func (t *Tracer) might(_ string, note any, s weir.Sketch) bool {
	c, _ := noteOf(note)
	switch {
	case s.Refused, s.Class == outcome.Rejected:
		return t.refusals.room(s.At)
	case bad(s.Class):
		return true
	case c != nil && c.top != nil: // its trace may be kept for what another call came to
		return true
	case c != nil:
		return c.sampled && !c.lasts
	}
	return t.others.room(s.At) || t.drawn(s.At)
}

// recorded keeps a call that has ended. It wants to know no more.
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

// why is why a call is kept.
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

// worstOf is the worst that has happened to a call, none if it went well.
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

// bad reports whether an attempt that ended so went wrong, and not by its caller's fault.
func bad(c outcome.Class) bool {
	return c == outcome.Failed || c == outcome.Throttled || c == outcome.Unknown
}

// sample decides early about a call that may go well.
func (t *Tracer) sample(now time.Time) bool {
	return t.each.takes(time.Duration(now.UnixNano())) || t.lucky(rand.Uint64())
}

// drawn decides about a call of which nothing is known but when it has ended. It says the same whenever it is asked of
// one call, and nobody outside knows the seed.
func (t *Tracer) drawn(at time.Duration) bool {
	x := (uint64(at) ^ t.seed) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return t.lucky(x ^ x>>32)
}

func (t *Tracer) lucky(x uint64) bool { return x>>1 < t.threshold }

// A shelf has room for so many a second.
type shelf struct {
	second atomic.Int64 // that the rest counts in
	taken  atomic.Int64
	each   int64
}

// room reports whether there is room in the second of the instant. It writes nothing.
func (s *shelf) room(now time.Duration) bool {
	return s.each > 0 && (s.second.Load() != int64(now/time.Second) || s.taken.Load() < s.each)
}

// takes counts one more, if there is room for it. Beyond the bound nothing is written, so that a storm has no line of
// memory that all cores write.
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

// milli is a duration in milliseconds, as far as there are.
func milli(d time.Duration) int64 { return int64(min(d, math.MaxInt64/2) / time.Millisecond) }
