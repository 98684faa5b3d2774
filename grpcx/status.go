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

// longestPush is the longest delay for which a client should wait within a call. For longer delays the program should decide.
const longestPush = 24 * time.Hour

// Status returns the status for an error. For a *weir.Refusal it has the reason and the delay before a retry. For a call that
// weir gave up it forbids a retry. The result ok is false for other errors, which stay unchanged. It is for a program's own
// handlers and interceptors. UnaryServer and StreamServer use it as well.
func Status(err error) (s *status.Status, ok bool) {
	s, _, ok = rendered(err)
	return s, ok
}

// rendered is Status with a trailer for clients that do not support RetryInfo: the delay in milliseconds, or a negative number to
// forbid a retry.
func rendered(err error) (s *status.Status, trailer metadata.MD, ok bool) {
	if r, is := errors.AsType[*weir.Refusal](err); is {
		s, push := Words(refuse.Of(r, time.Now()))
		return s, metadata.Pairs(pushback, push), true
	}
	if g, is := errors.AsType[*retry.GaveUpError](err); is {
		if inner, has := status.FromError(g.Last); has && g.Last != nil {
			return inner, metadata.Pairs(pushback, Never), true
		}
		return status.New(codes.Unavailable, "an upstream did not respond, and weir has already retried"), metadata.Pairs(pushback, Never), true
	}
	return nil, nil, false
}

// Never is the pushback that forbids the client's library to retry.
const Never = "-1"

// Words returns the status for weir's own error, with RetryInfo if the delay before a retry is known, and the pushback for
// libraries that do not support RetryInfo, "" for none.
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

// said returns a text in the details.
func said(f *refuse.Facts, name string) string {
	s, _ := f.Details[name].(string)
	return clean(s)
}

// clean returns s as UTF-8, which gRPC messages require and keys may not be.
func clean(s string) string { return strings.ToValidUTF8(s, "?") }

// told returns an error for the client, and its trailer.
func told(err error) (metadata.MD, error) {
	s, trailer, ok := rendered(err)
	if !ok {
		return nil, err
	}
	return trailer, s.Err()
}
