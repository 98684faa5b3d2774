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

// work is one call to a Store, as it goes on.
type work struct {
	Call
	begin   time.Time
	called  int64         // when the call began, by our clock
	arrived int64         // and when it was known what time it is
	took    time.Duration // by the latest update
	again   bool          // a request was sent of which it is not known whether it was executed
	granted int64         // when the first update was sent, by our clock, that may have granted something; 0 if none was
}

// start begins a call. If it is the first one it makes a request to learn the server's clock.
func (s *Store) start(ctx context.Context, op, group string) (*work, error) {
	w := &work{Call: Call{Op: op, Group: group}, begin: s.o.now()}
	if ctx.Err() != nil {
		return w, context.Cause(ctx)
	}
	w.called = s.clock.mono()
	// The answers to what only reads say what time it is.
	if op != "load" && op != "beat" {
		if err := s.learn(ctx, w); err != nil {
			return w, err
		}
	}
	w.arrived = s.clock.mono()
	return w, nil
}

// end counts and tells.
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

// try makes a request, and again if the server or the way to it is overloaded or broken.
// The waits between have full jitter, and none is begun that would not end before the
// deadline.
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

// waits waits until the request is to be made again, after n more. It reports false if it is not.
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

// A throttle keeps a process from asking a table that refuses for rate: after retries that did not help, and then longer each
// time, no request is sent. It is safe for concurrent use.
type throttle struct {
	mu    sync.Mutex
	until int64         // no request is sent before, by our clock
	wait  time.Duration // the next one waits for so long; 0 if the table does not throttle
}

const (
	firstThrottle = 100 * time.Millisecond
	mostThrottle  = time.Second
)

var errThrottled = errors.New("the table throttles requests, and weir sends none for up to a second: raise its capacity, or use leases")

// holds reports whether no request is to be sent now.
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

// more notes that the table refused once more.
func (t *throttle) more(now int64, jitter func(time.Duration) time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = min(mostThrottle, max(firstThrottle, 2*t.wait))
	t.until = now + int64(t.wait/2+jitter(t.wait/2))
}

// ends notes that the table answered.
func (t *throttle) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = 0
}

type kind uint8

const (
	final     kind = iota // an answer, or an error that repeating does not mend
	throttled             // nothing was done
	unknown               // it may have been done
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
		if e.HTTPStatusCode() == http.StatusOK { // an answer that broke off
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

// notAsExpected is the error of a condition that did not hold.
func notAsExpected(err error) *types.ConditionalCheckFailedException {
	e, _ := errors.AsType[*types.ConditionalCheckFailedException](err)
	return e
}
