// Package grpcclass says how a gRPC attempt ended, as package classify does for
// HTTP. It stands apart because it needs google.golang.org/grpc.
//
// [Error] and [Status] are for programs that call through a gRPC client;
// [Header] is for proxies, which see trailers as HTTP headers. All are pure,
// safe for concurrent use, and return for any input.
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

// Error classifies what a call returned as its error, nil included, with the
// trailer it returned, if any. ctx is the caller's own context, not one that was
// made for the attempt: if it has ended, the outcome is Canceled. Errors that
// are no gRPC statuses are left to classify.Error, and so is an
// outcome.Classifier, which answers for itself.
func Error(ctx context.Context, err error, trailer metadata.MD) outcome.Outcome {
	_, knows := errors.AsType[outcome.Classifier](err)
	s, isStatus := status.FromError(err)
	if err == nil || knows || !isStatus || ctx.Err() != nil {
		return classify.Error(ctx, err)
	}
	return Status(s, trailer)
}

// Status classifies a status and its trailer, either of which may be nil. It
// supposes that the caller is still waiting.
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
