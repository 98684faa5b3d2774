package dynamostore

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	drift   = 200                    // parts in a million by which a quartz may run wrong
	asleep  = 250 * time.Millisecond // more than that between monotonic and wall clock: the machine slept, or was set
	backBy  = 100 * time.Millisecond // the most by which what is said to be now goes slower rather than step back
	slower  = 200                    // one part in so many by which it does
	pace    = 10 * time.Millisecond  // between looks at the header while calibrating
	precise = 3 * pace               // width, without the margins, at which calibrating ends
	longest = 1300 * time.Millisecond
)

// A keeper knows within which bounds the server's clock is. What it measures by is the
// monotonic clock of the process, in nanoseconds since it began.
type keeper struct {
	now    func() time.Time
	exact  func() time.Time
	margin int64
	start  time.Time

	mu     sync.Mutex
	known  bool
	lo, hi int64 // the server's clock since 1970 less ours, as of at
	at     int64
	lead   int64         // by how much what is said to be now is ahead of the upper bound, as of leadAt
	leadAt int64         //
	wall   time.Duration // the wall clock less the monotonic one
	epoch  int           // goes up when what was measured by the monotonic clock has no meaning any more
}

func (k *keeper) begin(o Options) {
	k.now, k.exact, k.margin, k.start = o.now, o.exact, int64(o.Margin), o.now()
}

// mono is our clock. A suspended machine stops it, and everything measured by it is
// forgotten.
func (k *keeper) mono() int64 {
	now := k.now()
	m := now.Sub(k.start)
	off := now.Round(0).Sub(k.start.Round(0)) - m
	k.mu.Lock()
	defer k.mu.Unlock()
	if (off - k.wall).Abs() > asleep {
		k.wall, k.known = off, false
		k.epoch++
	}
	return int64(m)
}

// heard takes note of a Date header of an answer. One that contradicts what is known a
// little was late, or comes from another server: then both are believed. One that does by
// much shows that a clock was set.
func (k *keeper) heard(date time.Time, sent, received int64) {
	lo, hi := date.UnixNano()-received-k.margin, date.UnixNano()+int64(time.Second)-sent+k.margin
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known {
		wide := drifted(received - k.at)
		oldLo, oldHi := k.lo-wide, k.hi+wide
		switch {
		case hi < oldLo && oldLo-hi < int64(backBy):
			lo, hi = hi, oldHi
		case lo > oldHi && lo-oldHi < int64(backBy):
			lo, hi = oldLo, lo
		case hi >= oldLo && lo <= oldHi:
			lo, hi = max(lo, oldLo), min(hi, oldHi)
		}
	}
	said := k.upper(received) + k.leadOf(received)
	k.known, k.lo, k.hi, k.at = true, lo, hi, received
	k.leadBy(received, said-k.upper(received))
}

// upper is the upper bound at an instant, in nanoseconds.
func (k *keeper) upper(m int64) int64 { return m + k.hi + drifted(m-k.at) }

func (k *keeper) leadOf(m int64) int64 { return max(0, k.lead-(m-k.leadAt)/slower) }

// leadBy lets what is said to be now go on from where it is, unless that is far ahead.
func (k *keeper) leadBy(m, lead int64) {
	if k.lead, k.leadAt = max(0, lead), m; lead > int64(backBy) {
		k.lead = 0
	}
}

func drifted(d int64) int64 { return max(d, -d)/1_000_000*drift + drift }

// An instant is what a process knows of one instant, in microseconds of the server's
// clock, and in nanoseconds of its own.
type instant struct {
	mono   int64
	lo, hi int64
	label  int64 // what is said to be now: hi or a little more, so that it does not run backwards
	epoch  int
}

func (t instant) time() time.Time  { return time.UnixMicro(t.label) }
func (t instant) least() time.Time { return time.UnixMicro(t.lo) }

// read is the present. The keeper must have heard the server at least once.
func (k *keeper) read() instant {
	m := k.mono()
	k.mu.Lock()
	defer k.mu.Unlock()
	t := instant{mono: m, epoch: k.epoch}
	if k.exact != nil {
		t.lo = k.exact().UnixMicro()
		t.hi, t.label = t.lo, t.lo
		return t
	}
	wide := drifted(m - k.at)
	t.lo, t.hi = (m+k.lo-wide)/1000, (k.upper(m)+999)/1000
	t.label = t.hi + k.leadOf(m)/1000
	return t
}

// raise lets what is said to be now be no less than what another has said, if the two
// are not far apart. Clocks that are not known equally well then tell the same time.
func (k *keeper) raise(m, us int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if lead := us*1000 - k.upper(m); k.exact == nil && lead > k.leadOf(m) && lead < int64(backBy) {
		k.leadBy(m, lead)
	}
}

// width is how far apart the bounds are, without the margins; known is false if
// there are none.
func (k *keeper) width() (width time.Duration, known bool) {
	if k.exact != nil {
		return 0, true
	}
	m := k.mono()
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(k.hi - k.lo - 2*k.margin + 2*drifted(m-k.at)), k.known
}

// options are those of every call: the clock listens, and the SDK does not retry.
func (s *Store) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, s.listen)
}

func (s *Store) listen(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("weir/clock",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			sent := s.clock.mono()
			out, data, err := next.HandleDeserialize(ctx, in)
			if r, ok := out.RawResponse.(*smithyhttp.Response); ok && r != nil {
				if date, err := time.Parse(time.RFC1123, r.Header.Get("Date")); err == nil {
					s.clock.heard(date, sent, s.clock.mono())
				}
			}
			return out, data, err
		}), middleware.After)
}

// calibrate looks at the server's clock until it is known well enough, which takes
// about a second. Once is enough: later the answers to other calls do. A caller in a hurry
// goes on with what is known: bounds that are a second apart grant less, never more.
func (s *Store) calibrate(ctx context.Context, w *work) error {
	width, known := s.clock.width()
	if known && (width <= precise || s.calm.Load()) {
		return nil
	}
	select {
	case s.first <- struct{}{}:
		defer func() { <-s.first }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	patience := int64(longest)
	begin := s.clock.mono()
	if until, ok := ctx.Deadline(); ok {
		patience = min(patience, int64(until.Sub(s.o.now()))/2)
	}
	for {
		if width, known = s.clock.width(); known && width <= precise {
			s.calm.Store(true)
			return nil
		}
		if known && s.clock.mono()-begin >= patience {
			return nil
		}
		if known {
			if err := s.o.sleep(ctx, pace); err != nil {
				return err
			}
		}
		if err := s.probe(ctx, w); err != nil {
			return err
		}
	}
}

// probe is the cheapest call that there is.
func (s *Store) probe(ctx context.Context, w *work) error {
	return s.try(ctx, w, func() error {
		_, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf("clock")}, s.options)
		return err
	})
}
