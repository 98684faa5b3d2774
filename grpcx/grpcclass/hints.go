package grpcclass

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// hint reads RetryInfo and QuotaFailure from the details. An error about a daily quota has the delay of the minute limit, so that
// delay does not count.
func hint(s *status.Status) (h outcome.Hint) {
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			h.After, h.Said = retryDelay(d)
		case *errdetails.QuotaFailure:
			h.Quota = h.Quota || perDay(d)
		}
	}
	if h.Quota {
		h.After, h.Said = 0, false
	}
	return h
}

func retryDelay(d *errdetails.RetryInfo) (time.Duration, bool) {
	delay := d.GetRetryDelay()
	if delay == nil || delay.AsDuration() < 0 { // AsDuration saturates
		return 0, false
	}
	return min(delay.AsDuration(), classify.MaxAfter), true
}

func perDay(f *errdetails.QuotaFailure) bool {
	for _, v := range f.GetViolations() {
		if strings.Contains(v.GetQuotaId(), "PerDay") {
			return true
		}
	}
	return false
}

// pushback reads grpc-retry-pushback-ms (gRFC A6), which takes precedence over everything else: a non-negative number is the
// delay before a retry, and any other value forbids one.
func pushback(o outcome.Outcome, trailer metadata.MD) outcome.Outcome {
	v := trailer.Get("grpc-retry-pushback-ms")
	if len(v) == 0 {
		return o
	}
	ms, err := strconv.ParseInt(v[0], 10, 32)
	if err != nil || ms < 0 || len(v) > 1 {
		o.Hint.Advice = outcome.NotAgain
		return o
	}
	o.Hint.Advice = outcome.Again
	o.Hint.After, o.Hint.Said = time.Duration(ms)*time.Millisecond, true
	if !o.Retryable() {
		o.Class = outcome.Failed
	}
	return o
}
