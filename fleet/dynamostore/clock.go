package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/fleet"
)

const (
	drift      = 200                    // maximum error of a quartz, in parts per million
	asleep     = 250 * time.Millisecond // a larger change between wall and monotonic clock means that the machine slept or its clock was set
	backBy     = 100 * time.Millisecond // up to this step back, the label slows down instead of stepping back
	slower     = 200                    // it slows down by one part in this many
	pace       = 10 * time.Millisecond
	roughWidth = 250 * time.Millisecond // bounds wider than this, plus the round trip and without the margins, count as rough
	precise    = 3 * pace               // calibration ends at this width, without the margins, if round trips allow it
)

// A keeper keeps bounds of the server's clock. It measures with the process's monotonic clock, in nanoseconds since
// the keeper began. The label is the time that the process writes as the present.
type keeper struct {
	now    func() time.Time
	exact  func() time.Time
	margin int64
	start  time.Time

	mu          sync.Mutex
	known       bool
	lo, hi      int64 // the server's clock since 1970 minus the process's, at at
	at          int64
	lead        int64         // how far the label is ahead of the upper bound, at leadAt
	leadAt      int64         //
	wall        time.Duration // the wall clock minus the monotonic clock
	trip        int64         // the shortest round trip
	again       int64         // the next calibration starts after this instant
	calibrating bool
	epoch       int // grows when earlier measurements of the monotonic clock become invalid
}

func (k *keeper) begin(o Options) {
	k.now, k.exact, k.margin, k.start = o.now, o.exact, int64(o.Margin), o.now()
}

// mono returns the process's clock. It stops while the machine is suspended, so all measurements become invalid
// after that.
func (k *keeper) mono() int64 {
	now := k.now()
	m := now.Sub(k.start)
	off := now.Round(0).Sub(k.start.Round(0)) - m
	k.mu.Lock()
	defer k.mu.Unlock()
	if (off - k.wall).Abs() > asleep {
		k.wall, k.known, k.again = off, false, 0
		k.epoch++
	}
	return int64(m)
}

// heard updates the bounds with the Date header of a response. A header that contradicts the bounds a little was
// late or comes from another server: the bounds then include both. A large contradiction means that a clock was
// set, and replaces the bounds.
func (k *keeper) heard(date time.Time, sent, received int64) {
	lo, hi := date.UnixNano()-received-k.margin, date.UnixNano()+int64(time.Second)-sent+k.margin
	k.mu.Lock()
	defer k.mu.Unlock()
	if trip := received - sent; !k.known || trip < k.trip {
		k.trip = trip
	}
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
		default: // another clock, which must be calibrated
			k.again = 0
		}
	}
	said := k.upper(received) + k.leadOf(received)
	k.known, k.lo, k.hi, k.at = true, lo, hi, received
	k.leadBy(received, said-k.upper(received))
}

// upper returns the upper bound at an instant of the process's clock, in nanoseconds.
func (k *keeper) upper(m int64) int64 { return m + k.hi + drifted(m-k.at) }

func (k *keeper) leadOf(m int64) int64 { return max(0, k.lead-(m-k.leadAt)/slower) }

// leadBy keeps the label continuous, unless it would be far ahead.
func (k *keeper) leadBy(m, lead int64) {
	if k.lead, k.leadAt = max(0, lead), m; lead > int64(backBy) {
		k.lead = 0
	}
}

func drifted(d int64) int64 { return max(d, -d)/1_000_000*drift + drift }

// An instant is one instant in microseconds of the server's clock, as bounds, and in nanoseconds of the process's
// clock.
type instant struct {
	mono   int64
	lo, hi int64
	label  int64 // timestamp of the present: hi or slightly more, so that it does not run backwards
	epoch  int
	rough  bool // the bounds are still wide
}

func (t instant) time() time.Time  { return time.UnixMicro(t.label) }
func (t instant) least() time.Time { return time.UnixMicro(t.lo) }

// read returns the present. Before the first response, its bounds are 0 and rough.
func (k *keeper) read() instant {
	m := k.mono()
	k.mu.Lock()
	defer k.mu.Unlock()
	t := instant{mono: m, epoch: k.epoch, rough: k.exact == nil && !k.known}
	if k.exact != nil {
		t.lo = k.exact().UnixMicro()
		t.hi, t.label = t.lo, t.lo
		return t
	}
	wide := drifted(m - k.at)
	if !k.known {
		return t
	}
	t.rough = k.hi-k.lo-2*k.margin+2*wide > int64(roughWidth)+k.trip
	t.lo, t.hi = (m+k.lo-wide)/1000, (k.upper(m)+999)/1000
	t.label = t.hi + k.leadOf(m)/1000
	return t
}

// raise raises the label to another process's label, unless they are far apart. Processes with different bounds
// then use the same time.
func (k *keeper) raise(m, us int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if lead := us*1000 - k.upper(m); k.exact == nil && lead > k.leadOf(m) && lead < int64(backBy) {
		k.leadBy(m, lead)
	}
}

// width returns the distance between the bounds without the margins. known is false if there are no bounds.
func (k *keeper) width() (width time.Duration, known bool) {
	if k.exact != nil {
		return 0, true
	}
	m := k.mono()
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(k.hi - k.lo - 2*k.margin + 2*drifted(m-k.at)), k.known
}

func (k *keeper) state() fleet.ClockState {
	t := k.read()
	wall := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.exact != nil || !k.known {
		return fleet.ClockState{Known: k.exact != nil}
	}
	lo, hi := time.UnixMicro(t.lo), time.UnixMicro(t.hi)
	half := hi.Sub(lo) / 2
	return fleet.ClockState{
		Known: true, Rough: t.rough,
		Ahead: lo.Add(half).Sub(wall.Round(0)), Uncertainty: half, RoundTrip: time.Duration(k.trip),
	}
}

func (k *keeper) isCalibrating() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calibrating
}

// ClockState implements fleet.Clocked.
func (s *Store) ClockState() fleet.ClockState { return s.clock.state() }

// MeasureClock implements fleet.Clocked.
func (s *Store) MeasureClock(ctx context.Context) error {
	w := &work{Call: Call{Op: "clock"}, begin: s.o.now()}
	err := s.learn(ctx, w)
	for err == nil && s.clock.isCalibrating() {
		err = s.o.sleep(ctx, pace)
	}
	return s.end(w, err)
}

func (k *keeper) isKnown() bool {
	_, known := k.width()
	return known
}

// options are the client options of every call: the keeper reads responses, and the SDK does not retry.
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

// learn sends one request if the server's clock is unknown, and starts a calibration in the background. Calls do
// not wait for the calibration: wide bounds grant less, never more.
func (s *Store) learn(ctx context.Context, w *work) error {
	if _, known := s.clock.width(); known {
		s.calibrate()
		return nil
	}
	select {
	case s.first <- struct{}{}:
		defer func() { <-s.first }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, known := s.clock.width(); known { // another call has learned it meanwhile
		return nil
	}
	if err := s.probe(ctx, w); err != nil {
		return err
	}
	if _, known := s.clock.width(); !known {
		return errNoDate
	}
	s.calibrate()
	return nil
}

var errNoDate = errors.New("the responses have no Date header, so the table's clock is unknown: check what removes it between weir and DynamoDB")

// A calibration makes passes of probes, each within one second, until the bounds are as narrow as round trips
// allow.
const (
	firstProbes    = 16               // of the first pass
	laterProbes    = 8                // of each later pass
	passes         = 8                // maximum number of passes
	recalibrate    = 10 * time.Second // pause after a calibration that did not reach that width
	probeTimeout   = 5 * time.Second
	calibrateAhead = 5 * time.Millisecond // minimum time before the first probe of a pass
)

// calibrate starts a calibration in the background unless one is running or the bounds are narrow enough. Usually
// one calibration suffices: later, the responses to other calls keep the bounds narrow.
func (s *Store) calibrate() {
	if s.clock.exact != nil || s.clock.sharp() {
		return
	}
	if s.ctx.Err() != nil || !s.clock.begins(s.clock.mono()) {
		return
	}
	s.background.Go(func() {
		w := &work{Call: Call{Op: "clock"}, begin: s.o.now()}
		var err error
		for range passes {
			if err = s.pass(w); err != nil || s.clock.sharp() {
				break
			}
		}
		s.clock.ends(s.clock.mono())
		if s.o.Observe != nil {
			w.Took, w.Err = s.o.now().Sub(w.begin), err
			s.o.Observe(w.Call)
		}
	})
}

// begins reports whether a calibration should begin, and marks it as running.
func (k *keeper) begins(now int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.calibrating || now < k.again {
		return false
	}
	k.calibrating = true
	return true
}

func (k *keeper) ends(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calibrating, k.again = false, now+int64(recalibrate)
}

// pass sends probes around the change of the server's second, so that their Date headers narrow the bounds. It
// skips probes whose responses can no longer narrow them. It returns the error of the last probe if none was
// answered.
func (s *Store) pass(w *work) error {
	earliest, latest, n := s.clock.turns(s.clock.mono() + int64(calibrateAhead))
	var mu sync.Mutex
	var err error
	answered := false
	var probes sync.WaitGroup
	for i := range n {
		at := earliest + (latest-earliest)*int64(2*i+1)/int64(2*n)
		if from, to := s.clock.turnsNear(at); at < from || at > to {
			continue
		}
		if s.o.sleep(s.ctx, time.Duration(at-s.clock.mono())) != nil {
			break
		}
		w.Requests++
		probes.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, probeTimeout)
			defer cancel()
			_, e := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf("clock")}, s.options)
			mu.Lock()
			defer mu.Unlock()
			if err = cmp.Or(e, err); e == nil {
				answered = true
			}
		})
	}
	probes.Wait()
	if answered {
		return nil
	}
	return err
}

// turns returns between which times of the process's clock a probe must be sent to arrive when the server's next
// second begins, and how many probes to send.
func (k *keeper) turns(from int64) (earliest, latest int64, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lo, hi := k.middle()
	second := int64(time.Second)
	next := (from + hi + second - 1) / second * second // of the server's clock
	if n = laterProbes; hi-lo > second/2 {
		n = firstProbes
	}
	return next - hi, next - lo, n
}

// turnsNear is turns for the second that is nearest to a probe's instant.
func (k *keeper) turnsNear(at int64) (earliest, latest int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lo, hi := k.middle()
	second := int64(time.Second)
	next := (at + (lo+hi)/2 + second/2) / second * second
	return next - hi, next - lo
}

// middle returns the bounds of the server's clock minus the process's, without the margins. They are for a probe
// that arrives half a round trip after it was sent.
func (k *keeper) middle() (lo, hi int64) {
	lo, hi = k.lo+k.margin+k.trip/2, k.hi-k.margin+k.trip/2
	return min(lo, hi), max(lo, hi)
}

// sharp reports whether the bounds are about as narrow as the round trip allows.
func (k *keeper) sharp() bool {
	width, known := k.width()
	k.mu.Lock()
	defer k.mu.Unlock()
	return known && width <= max(precise, time.Duration(k.trip+k.trip/4)+pace)
}

// probe sends the cheapest possible request.
func (s *Store) probe(ctx context.Context, w *work) error {
	return s.try(ctx, w, func() error {
		_, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf("clock")}, s.options)
		return err
	})
}
