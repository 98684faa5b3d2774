package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/fleet"
)

// work is the state of one call to a Store.
type work struct {
	Call
	begin   time.Time
	called  int64         // when the call began, by the process's clock
	arrived int64         // when the time was known
	took    time.Duration // duration of the latest update
	again   bool          // a request was sent that may or may not have been executed
	granted int64         // when the first update was sent that may have granted units, by the process's clock; 0 if none
}

// start begins a call. The first call sends a request to learn the server's clock.
func (s *Store) start(ctx context.Context, op, group string) (*work, error) {
	w := &work{Call: Call{Op: op, Group: group}, begin: s.o.now()}
	if ctx.Err() != nil {
		return w, context.Cause(ctx)
	}
	w.called = s.clock.mono()
	// The responses to calls that only read contain the time.
	if op != "load" && op != "beat" {
		if err := s.learn(ctx, w); err != nil {
			return w, err
		}
	}
	w.arrived = s.clock.mono()
	return w, nil
}

// end counts and reports the call.
func (s *Store) end(w *work, err error) error {
	s.requests.Add(int64(w.Requests))
	s.failed.Add(int64(w.Failed))
	s.throttled.Add(int64(w.Throttled))
	s.retried.Add(int64(w.Retried))
	if err != nil && !errors.Is(err, fleet.ErrWindow) {
		err = fmt.Errorf("dynamodb table %q: %s: %w%s", s.table, w.Op, err, advice(err))
	}
	if s.o.Observe != nil {
		w.Took, w.Err = s.o.now().Sub(w.begin), err
		s.o.Observe(w.Call)
	}
	return err
}

const (
	retries   = 5
	firstWait = 10 * time.Millisecond
	mostWait  = 250 * time.Millisecond
)

// try sends a request. It retries if the server or the network is overloaded or broken. The pauses have full
// jitter. It does not start a pause that would outlast the deadline.
func (s *Store) try(ctx context.Context, w *work, request func() error) error {
	for n := 0; ; n++ {
		if s.throttle.holds(s.clock.mono()) {
			return errThrottled
		}
		w.Requests++
		err := request()
		kind := kindOf(err)
		if kind == final {
			s.throttle.ends()
		}
		switch kind {
		case unknown:
			w.again = true
		case throttled:
			w.Throttled++
		}
		if !s.waits(ctx, kind, n) {
			if kind == throttled {
				s.throttle.more(s.clock.mono(), s.o.jitter)
			}
			return err
		}
		w.Retried++
	}
}

// waits pauses before retry n and reports whether to send the request again.
func (s *Store) waits(ctx context.Context, k kind, n int) bool {
	if k == final || n == retries || ctx.Err() != nil || k == throttled && s.throttle.isOn() {
		return false
	}
	wait := s.o.jitter(min(mostWait, firstWait<<n))
	if until, ok := ctx.Deadline(); ok && until.Sub(s.o.now()) <= wait {
		return false
	}
	return s.o.sleep(ctx, wait) == nil
}

// A throttle stops requests to a table that throttles. After retries that failed, the process sends no request for
// a time that doubles, up to a maximum. It is safe for concurrent use.
type throttle struct {
	mu    sync.Mutex
	until int64         // no request is sent before, by the process's clock
	wait  time.Duration // the latest pause; 0 if the table does not throttle
}

const (
	firstThrottle = 100 * time.Millisecond
	mostThrottle  = time.Second
)

var errThrottled = errors.New("the table throttles requests, and weir sends none for up to a second: raise its capacity, or use leases")

// holds reports whether requests must not be sent now.
func (t *throttle) holds(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait > 0 && now < t.until
}

func (t *throttle) isOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait > 0
}

// more records another throttled request.
func (t *throttle) more(now int64, jitter func(time.Duration) time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = min(mostThrottle, max(firstThrottle, 2*t.wait))
	t.until = now + int64(t.wait/2+jitter(t.wait/2))
}

// ends records that the table responded.
func (t *throttle) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = 0
}

type kind uint8

const (
	final     kind = iota // a response, or an error that a retry does not fix
	throttled             // the request was not executed
	unknown               // the request may have been executed
)

var throttles = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"KeyRangeThroughputExceeded":             true,
	"KeyRangeThroughputExceededException":    true,
	"RequestLimitExceeded":                   true,
	"ThrottlingException":                    true,
	"Throttling":                             true,
	"ThrottledException":                     true,
	"TooManyRequestsException":               true,
}

func kindOf(err error) kind {
	if err == nil || notAsExpected(err) != nil {
		return final
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok && throttles[e.ErrorCode()] {
		return throttled
	}
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		if e.HTTPStatusCode() >= http.StatusInternalServerError || e.HTTPStatusCode() == 0 {
			return unknown
		}
		if e.HTTPStatusCode() == http.StatusOK { // an incomplete response
			return unknown
		}
		return final
	}
	if _, ok := errors.AsType[smithy.APIError](err); ok {
		return final
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return unknown
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return unknown
	}
	return final
}

// notAsExpected returns the error of a condition that did not hold, or nil.
func notAsExpected(err error) *types.ConditionalCheckFailedException {
	e, _ := errors.AsType[*types.ConditionalCheckFailedException](err)
	return e
}
