package envoy

import (
	"math"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	okay = rls.RateLimitResponse_OK
	over = rls.RateLimitResponse_OVER_LIMIT
)

// A verdict is what became of a place.
type verdict struct {
	over bool  // its limit was exceeded, or would have been
	deny bool  // and refuses the request
	left int64 // what remains
}

// judge reads a verdict from the counter's answer. A request that was refused has
// changed nothing, so what remains is the same for all its places of a counter; one
// that was granted was charged place by place.
func (p *plan) judge(at *place) verdict {
	c := at.counter
	amount, gone := int64(c.amount), c.gone()
	if p.refused {
		v := verdict{left: c.left()}
		switch {
		case at.hits == 0:
			v.over = v.left == 0
		case at.hits > 0:
			v.over = c.grant.Paused > 0 || at.before+at.hits > v.left
		}
		v.deny = v.over && (!c.open() || c.exhausted() && at.hits == 0)
		return v
	}
	if c.hits != 0 { // what later places did stands not yet in this one's answer
		gone -= c.hits - at.before - at.hits
	}
	v := verdict{left: min(max(0, amount-gone), amount)}
	v.over = gone > amount || at.hits == 0 && gone >= amount
	v.over = v.over && at.hits >= 0
	return v
}

// answer is the response to a request that was decided.
func (s *Server) answer(req *rls.RateLimitRequest, p *plan) (*rls.RateLimitResponse, []verdict) {
	resp := &rls.RateLimitResponse{OverallCode: okay}
	verdicts := make([]verdict, len(p.places))
	for i := range p.places {
		at := &p.places[i]
		status := &rls.RateLimitResponse_DescriptorStatus{Code: okay}
		switch {
		case at.counter != nil:
			verdicts[i] = p.judge(at)
			at.describe(status, verdicts[i])
		case at.quota != nil: // unlimited
			status.LimitRemaining = math.MaxUint32
		}
		if status.Code == over {
			resp.OverallCode = over
		}
		resp.Statuses = append(resp.Statuses, status)
	}
	s.headers(resp, p, verdicts)
	resp.DynamicMetadata = p.metadata(req, verdicts)
	return resp, verdicts
}

func (at *place) describe(status *rls.RateLimitResponse_DescriptorStatus, v verdict) {
	if v.deny {
		status.Code = over
	}
	status.CurrentLimit = &rls.RateLimitResponse_RateLimit{
		Name: at.name, RequestsPerUnit: at.amount, Unit: at.span.unit,
	}
	if at.span.every > 1 {
		status.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(uint32(at.span.every))
	}
	status.LimitRemaining = uint32(v.left)
	status.DurationUntilReset = durationpb.New(at.counter.grant.Reset)
}
