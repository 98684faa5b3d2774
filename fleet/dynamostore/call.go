package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	if op != "load" {
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
		w.Requests++
		err := request()
		kind := kindOf(err)
		switch kind {
		case unknown:
			w.again = true
		case throttled:
			w.Throttled++
		}
		if kind == final || n == retries || ctx.Err() != nil {
			return err
		}
		wait := s.o.jitter(min(mostWait, firstWait<<n))
		if until, ok := ctx.Deadline(); ok && until.Sub(s.o.now()) <= wait {
			return err
		}
		if s.o.sleep(ctx, wait) != nil {
			return err
		}
		w.Retried++
	}
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
