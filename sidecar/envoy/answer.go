package envoy

import (
	"math"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	okay = rls.RateLimitResponse_OK
	over = rls.RateLimitResponse_OVER_LIMIT
)

// A verdict is the result for a place.
type verdict struct {
	over bool  // its limit was exceeded, or would have been
	deny bool  // and the limit refuses the request
	left int64 // remaining units
}

// judge reads a verdict from the counter's grant. A refused request has changed nothing, so the remaining units are
// the same for all places of a counter. A granted request was charged place by place.
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
	if c.hits != 0 { // this place's answer does not include the charges of later places
		gone -= c.hits - at.before - at.hits
	}
	v := verdict{left: min(max(0, amount-gone), amount)}
	v.over = gone > amount || at.hits == 0 && gone >= amount
	v.over = v.over && at.hits >= 0
	return v
}

// answer returns the response to a decided request.
func (s *Server) answer(req *rls.RateLimitRequest, p *plan) *rls.RateLimitResponse {
	resp := &rls.RateLimitResponse{OverallCode: okay, Statuses: make([]*rls.RateLimitResponse_DescriptorStatus, len(p.places))}
	said := make([]said, len(p.places))
	for i := range p.places {
		at, to := &p.places[i], &said[i]
		v := verdict{}
		to.status.Code = okay
		switch {
		case at.counter != nil:
			v = p.judge(at)
			at.describe(to, v)
		case at.quota != nil: // unlimited
			to.status.LimitRemaining = math.MaxUint32
		}
		if to.status.Code == over {
			resp.OverallCode = over
		}
		resp.Statuses[i] = &to.status
		p.verdicts = append(p.verdicts, v)
	}
	s.headers(resp, p)
	resp.DynamicMetadata = p.metadata(req)
	return resp
}

// said groups the messages for a place, to allocate them together.
type said struct {
	status rls.RateLimitResponse_DescriptorStatus
	limit  rls.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

func (at *place) describe(to *said, v verdict) {
	if v.deny {
		to.status.Code = over
	}
	to.limit.Name, to.limit.RequestsPerUnit, to.limit.Unit = at.name, at.amount, at.span.unit
	if at.span.every > 1 {
		to.limit.UnitMultiplier = wrapperspb.UInt32(uint32(at.span.every))
	}
	reset := at.counter.grant.Reset
	to.reset.Seconds, to.reset.Nanos = int64(reset/time.Second), int32(reset%time.Second)
	to.status.CurrentLimit, to.status.DurationUntilReset = &to.limit, &to.reset
	to.status.LimitRemaining = uint32(v.left)
}
