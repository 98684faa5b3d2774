// Package grpcclass determines the result of a gRPC attempt, as package classify does for HTTP. It is a separate package because
// it needs google.golang.org/grpc.
//
// [Error] and [Status] are for programs that use a gRPC client. [Header] is for proxies, which receive trailers as HTTP headers.
// All are pure, safe for concurrent use, and accept any input.
package grpcclass

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Error classifies the error of a call, including nil, with the trailer of the call, if any. ctx is the caller's own context, not
// the attempt's: if it has ended, the outcome is Canceled. It passes errors that are not gRPC statuses to classify.Error, and an
// outcome.Classifier as well, which determines its own outcome. A call that the local client refused is Rejected.
func Error(ctx context.Context, err error, trailer metadata.MD) outcome.Outcome {
	_, knows := errors.AsType[outcome.Classifier](err)
	s, isStatus := status.FromError(err)
	if err == nil || knows || !isStatus || ctx.Err() != nil {
		return classify.Error(ctx, err)
	}
	if o, refused := refusedHere(s, trailer); refused {
		return o
	}
	return Status(s, trailer)
}

// Status classifies a status and its trailer, either of which may be nil. It assumes that the caller is still waiting.
func Status(s *status.Status, trailer metadata.MD) outcome.Outcome {
	o := outcome.Outcome{Class: classOf(s)}
	if o.Class == outcome.OK {
		return o
	}
	o.Code = Name(s.Code())
	o.Undone = o.Class == outcome.Throttled
	o.Hint = hint(s)
	return pushback(o, trailer)
}

func classOf(s *status.Status) outcome.Class {
	switch c := s.Code(); c {
	case codes.ResourceExhausted:
		if tooLarge(s.Message()) {
			return outcome.Rejected
		}
		return outcome.Throttled
	default:
		if int(c) < len(table) {
			return table[c].class
		}
		return outcome.Unknown
	}
}
