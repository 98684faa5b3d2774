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
	"google.golang.org/protobuf/protoadapt"
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
	if r, is := errors.AsType[*weir.Refusal](err); is {
		s, push := Words(refuse.Of(r, time.Now()))
		return s, metadata.Pairs(pushback, push), true
	}
	if g, is := errors.AsType[*retry.GaveUpError](err); is {
		if inner, has := status.FromError(g.Last); has && g.Last != nil {
			return inner, metadata.Pairs(pushback, Never), true
		}
		return status.New(codes.Unavailable, "an upstream gave no answer: it was tried often enough"), metadata.Pairs(pushback, Never), true
	}
	return nil, nil, false
}

// Never is the pushback by which a client's own library does not try again.
const Never = "-1"

// Words are what a gRPC client is told of an error of weir's own: the status, with RetryInfo if
// it is known when to come back, and the pushback for libraries that know nothing of
// RetryInfo; "" if there is nothing to say.
func Words(f *refuse.Facts) (s *status.Status, push string) {
	s = status.New(codeOf(f.Status), clean(f.Message))
	var details []protoadapt.MessageV1
	if f.Wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Wait)})
	}
	if f.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: string(f.Reason), Domain: "weir", Metadata: map[string]string{
			"upstream": said(f, "upstream"), "operation": said(f, "operation"), "limit": said(f, "limit"),
		}})
	}
	if full, err := s.WithDetails(details...); err == nil && len(details) > 0 {
		s = full
	}
	switch {
	case f.Final, f.Endless, f.Wait > longestPush:
		push = Never
	case f.Wait > 0:
		push = strconv.FormatInt(refuse.Ceil(f.Wait, time.Millisecond), 10)
	}
	return s, push
}

// codeOf is the code that goes with a status of weir's own.
func codeOf(status int) codes.Code {
	switch status {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return codes.ResourceExhausted
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return codes.Unavailable
	case http.StatusInternalServerError:
		return codes.Internal
	}
	return codes.InvalidArgument
}

// said is a text among the details.
func said(f *refuse.Facts, name string) string {
	s, _ := f.Details[name].(string)
	return clean(s)
}

// clean is a text that a message of gRPC may hold: that must be UTF-8, and keys need not be.
func clean(s string) string { return strings.ToValidUTF8(s, "?") }

// told is an error as a client is to see it, and the trailer that goes with it.
func told(err error) (metadata.MD, error) {
	s, trailer, ok := rendered(err)
	if !ok {
		return nil, err
	}
	return trailer, s.Err()
}
