package grpcclass

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// unsent are the texts with which gRPC's client refuses a call before it sends anything. They have no code of their own.
var unsent = [...]string{
	"header key ", // metadata
	"there is an empty key in the header",
	"header list size to send violates the maximum size",
	"grpc: Compressor is not installed for requested grpc-encoding",
	"no codec registered for content-subtype",
	"transport: per-RPC creds failed",
	"transport: received per-RPC creds error with illegal status",
	"credentials type ",
	"failed to validate authority",
	"invalid client interceptor type",
}

// unfinished are the texts with which it refuses a message of a call that has begun.
var unfinished = [...]string{
	"grpc: error while marshaling",
	"grpc: error while compressing",
	"SendMsg called after CloseSend",
}

// refusedHere returns the outcome of a call that the local client refused, which proves nothing about the upstream. A status of
// the server has a trailer.
func refusedHere(s *status.Status, trailer metadata.MD) (o outcome.Outcome, ok bool) {
	if c := s.Code(); len(trailer) > 0 || c != codes.Internal && c != codes.Unavailable {
		return o, false
	}
	o = outcome.Outcome{Class: outcome.Rejected, Code: classify.InvalidRequest}
	if begins(s.Message(), unsent[:]) {
		o.Undone, o.Unsent = true, true
		return o, true
	}
	return o, begins(s.Message(), unfinished[:])
}

func begins(s string, all []string) bool {
	for _, words := range all {
		if strings.HasPrefix(s, words) {
			return true
		}
	}
	return false
}
