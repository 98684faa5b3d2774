package envoy

import (
	"context"
	"errors"
	"io"
	"net/http"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// JSON answers the same requests over HTTP, written as the JSON of their messages:
// 200 if they are OK, 429 if they are over a limit.
func (s *Server) JSON() http.Handler { return http.HandlerFunc(s.serveJSON) }

func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send a RateLimitRequest with POST", http.StatusMethodNotAllowed)
		return
	}
	resp, err := s.overHTTP(w, r)
	if err != nil {
		http.Error(w, status.Convert(err).Message(), statusOf(err))
		return
	}
	body, err := protojson.Marshal(resp)
	if err != nil {
		http.Error(w, "the answer cannot be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if resp.GetOverallCode() == over {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	w.Write(body)
}

func (s *Server) overHTTP(w http.ResponseWriter, r *http.Request) (*rls.RateLimitResponse, error) {
	ctx := r.Context()
	if s.options.Auth != nil {
		caller, err := s.options.Auth(r.Header.Get("Authorization"), r.TLS)
		if err != nil {
			return nil, refusal(err)
		}
		ctx = context.WithValue(ctx, callerKey{}, caller)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.config.MaxRequestBytes)))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, status.Errorf(codes.ResourceExhausted, "the request has more than %d bytes", s.config.MaxRequestBytes)
		}
		return nil, status.Error(codes.InvalidArgument, "the request could not be read")
	}
	var req rls.RateLimitRequest
	if err := protojson.Unmarshal(body, &req); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the body is not a RateLimitRequest: %v", err)
	}
	if s.options.Tracer != nil {
		ctx = withTrace(ctx, r.Header)
	}
	return s.ShouldRateLimit(ctx, &req)
}

func statusOf(err error) int {
	switch status.Code(err) {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.ResourceExhausted:
		return http.StatusRequestEntityTooLarge
	case codes.Unavailable, codes.DeadlineExceeded:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
