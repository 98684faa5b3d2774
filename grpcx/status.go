package grpcx

import (
	"errors"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// longestHint is what a refusal that nobody knows the end of says.
const longestHint = 24 * time.Hour

// Status is what a client is to be told of an error: of a *weir.Refusal why and when to
// come back, of a call that weir gave up that it is of no use to try again. ok is false
// for all others, which are left as they are.
func Status(err error) (s *status.Status, ok bool) {
	if r, is := errors.AsType[*weir.Refusal](err); is {
		return refused(r), true
	}
	if g, is := errors.AsType[*retry.GaveUpError](err); is {
		if inner, has := status.FromError(g.Last); has && g.Last != nil {
			return inner, true
		}
		return status.New(codes.Unavailable, "an upstream gave no answer: it was tried often enough"), true
	}
	return nil, false
}

func refused(r *weir.Refusal) *status.Status {
	code := codes.ResourceExhausted
	if r.Reason.Unavailable() {
		code = codes.Unavailable
	}
	s := status.New(code, r.Error())
	info := &errdetails.RetryInfo{RetryDelay: durationpb.New(min(r.RetryAfter, longestHint))}
	reason := &errdetails.ErrorInfo{Reason: string(r.Reason), Domain: "weir", Metadata: map[string]string{"upstream": r.Upstream, "operation": r.Operation, "limit": r.Limit}}
	if full, err := s.WithDetails(info, reason); err == nil {
		return full
	}
	return s
}

// trailerOf tells clients that know nothing of RetryInfo when to come back; below 0 says
// not to.
func trailerOf(err error) metadata.MD {
	if r, ok := errors.AsType[*weir.Refusal](err); ok && r.RetryAfter <= longestHint {
		return metadata.Pairs(pushback, strconv.FormatInt(int64((r.RetryAfter+time.Millisecond-1)/time.Millisecond), 10))
	}
	return metadata.Pairs(pushback, "-1")
}

// told is an error as a client is to see it, and the trailer that goes with it.
func told(err error) (metadata.MD, error) {
	if err == nil {
		return nil, nil
	}
	if s, ok := Status(err); ok {
		return trailerOf(err), s.Err()
	}
	return nil, err
}
