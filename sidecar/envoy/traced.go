package envoy

import (
	"context"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/observe/trace"
)

// method is the name of requests in traces.
var method = service + "/ShouldRateLimit"

// traced is judge with a span in the caller's trace.
func (s *Server) traced(ctx context.Context, req *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	fields, _ := metadata.FromIncomingContext(ctx)
	of := s.options.Tracer.Joins(fields, trace.About{Kind: trace.Server, Name: method})
	var end trace.Answer
	defer func() { of.End(end) }() // also after a panic
	resp, err := s.judge(ctx, req, of)
	of.Note(trace.Text(trace.AttrRPCSystem, "grpc"), trace.Text(trace.AttrRPCMethod, method), trace.Text(trace.AttrRPCStatus, status.Code(err).String()))
	switch status.Code(err) {
	case codes.OK:
		end.Refused = resp.GetOverallCode() == over
	case codes.InvalidArgument, codes.Canceled: // not an error of weir
		of.Note(trace.Text(trace.AttrErrorType, status.Code(err).String()))
	default:
		end.Err = err
	}
	return resp, err
}

// stepped adds the store call to a trace.
func stepped(of *trace.Call, begin time.Time, p *plan, err error) {
	switch {
	case of == nil || len(p.counters) == 0:
	case err != nil:
		of.Step("store", begin, trace.Text(trace.AttrErrorType, status.Code(err).String()))
	default:
		of.Step("store", begin)
	}
}

// blamed adds the first limit that refused to a trace.
func blamed(of *trace.Call, p *plan) {
	if of == nil {
		return
	}
	for i := range p.verdicts {
		if p.verdicts[i].deny {
			of.Note(trace.Text(trace.AttrLimit, p.places[i].label))
			return
		}
	}
}
