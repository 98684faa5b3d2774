package grpcclass

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seed1158cd35/weir/outcome"
)

// Header classifies a call by its HTTP trailers or, for a response with only trailers, its headers. Keys are canonical, as
// net/http delivers them. It returns false if there is no grpc-status: then the response did not come from a gRPC server, and
// classify.HTTP classifies its HTTP status.
func Header(h http.Header) (outcome.Outcome, bool) {
	v := h["Grpc-Status"]
	if len(v) == 0 {
		return outcome.Outcome{}, false
	}
	var trailer metadata.MD
	if p := h["Grpc-Retry-Pushback-Ms"]; len(p) > 0 {
		trailer = metadata.MD{"grpc-retry-pushback-ms": p}
	}
	return Status(statusOf(v[0], h), trailer), true
}

func statusOf(code string, h http.Header) *status.Status {
	c, err := strconv.ParseUint(strings.TrimSpace(code), 10, 31)
	if err != nil {
		return status.New(codes.Unknown, "grpc-status cannot be read")
	}
	if s := detailed(h); s != nil && uint64(s.GetCode()) == c {
		return status.FromProto(s)
	}
	message := h.Get("Grpc-Message")
	if m, err := url.PathUnescape(message); err == nil {
		message = m
	}
	return status.New(codes.Code(c), message)
}

// detailed decodes the status with its details, nil if there is none. It accepts Base64 with and without padding.
func detailed(h http.Header) *spb.Status {
	v := strings.TrimRight(h.Get("Grpc-Status-Details-Bin"), "=")
	b, err := base64.RawStdEncoding.DecodeString(v)
	if v == "" || err != nil {
		return nil
	}
	s := new(spb.Status)
	if proto.Unmarshal(b, s) != nil {
		return nil
	}
	return s
}
