package grpcx

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/retry"
)

// longestPush is the longest wait that a client is to spend within a call before it tries again
// by itself; what takes longer is for the program to decide.
const longestPush = 24 * time.Hour

// Status is what a client is to be told of an error: of a *weir.Refusal why and when to
// come back, of a call that weir gave up that it is of no use to try again. ok is false
// for all others, which are left as they are. It is for handlers and interceptors of a program's
// own; UnaryServer and StreamServer do as much.
func Status(err error) (s *status.Status, ok bool) {
	s, _, ok = rendered(err)
	return s, ok
}

// rendered is Status, and the trailer that goes with it for clients that know nothing of
// RetryInfo: in how many milliseconds to come back, or below 0 not to.
func rendered(err error) (s *status.Status, trailer metadata.MD, ok bool) {
	never := metadata.Pairs(pushback, "-1")
	if r, is := errors.AsType[*weir.Refusal](err); is {
		f := refuse.Of(r, time.Now())
		if r.RetryAfter > longestPush {
			return refused(f, r), never, true
		}
		return refused(f, r), metadata.Pairs(pushback, strconv.FormatInt(refuse.Ceil(f.Wait, time.Millisecond), 10)), true
	}
	if g, is := errors.AsType[*retry.GaveUpError](err); is {
		if inner, has := status.FromError(g.Last); has && g.Last != nil {
			return inner, never, true
		}
		return status.New(codes.Unavailable, "an upstream gave no answer: it was tried often enough"), never, true
	}
	return nil, nil, false
}

// refused is the status of a refusal. Messages of gRPC must be UTF-8, and keys need not be.
func refused(f *refuse.Facts, r *weir.Refusal) *status.Status {
	code := codes.ResourceExhausted
	if f.Status == http.StatusServiceUnavailable {
		code = codes.Unavailable
	}
	clean := func(s string) string { return strings.ToValidUTF8(s, "?") }
	s := status.New(code, clean(f.Message))
	info := &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Wait)}
	reason := &errdetails.ErrorInfo{Reason: string(f.Reason), Domain: "weir", Metadata: map[string]string{
		"upstream": clean(r.Upstream), "operation": clean(r.Operation), "limit": clean(r.Limit),
	}}
	if full, err := s.WithDetails(info, reason); err == nil {
		return full
	}
	return s
}

// told is an error as a client is to see it, and the trailer that goes with it.
func told(err error) (metadata.MD, error) {
	s, trailer, ok := rendered(err)
	if !ok {
		return nil, err
	}
	return trailer, s.Err()
}
