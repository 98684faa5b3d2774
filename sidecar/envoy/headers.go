package envoy

import (
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// Headers selects the headers that Envoy adds to responses for its clients.
type Headers string

const (
	NoHeaders     Headers = ""          // none
	ThreeHeaders  Headers = "ratelimit" // RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset
	PolicyHeaders Headers = "policy"    // RateLimit and RateLimit-Policy, as in the newest IETF draft
)

// headers adds headers for the limit that the client will reach first. It skips limits that refuse no request.
func (s *Server) headers(resp *rls.RateLimitResponse, p *plan) {
	if s.config.Headers == NoHeaders {
		return
	}
	first := -1
	for i := range p.places {
		at := &p.places[i]
		if at.counter != nil && !at.shadow && !at.soft && (first < 0 || p.verdicts[i].before(p.verdicts[first])) {
			first = i
		}
	}
	if first < 0 {
		return
	}
	add := func(key, value string) {
		resp.ResponseHeadersToAdd = append(resp.ResponseHeadersToAdd, &core.HeaderValue{Key: key, Value: value})
	}
	at, left, reset := &p.places[first], p.verdicts[first].left, p.places[first].counter.grant.Reset
	if s.config.Headers == ThreeHeaders {
		add("RateLimit-Limit", strconv.FormatInt(int64(at.amount), 10))
		add("RateLimit-Remaining", strconv.FormatInt(left, 10))
		add("RateLimit-Reset", strconv.FormatInt(refuse.Ceil(reset, time.Second), 10))
		return
	}
	w := at.counter.windows
	add("RateLimit", refuse.LevelItem(at.policy(), left, reset))
	add("RateLimit-Policy", refuse.PolicyItem(at.policy(), int64(at.amount), w.End.Sub(w.Start)))
}

// before reports whether a client reaches v earlier than w.
func (v verdict) before(w verdict) bool {
	if v.deny != w.deny {
		return v.deny
	}
	return v.left < w.left
}

// policy returns the name of a limit for clients, who need not know its position in the rules.
func (at *place) policy() string {
	if at.name != "" {
		return at.name
	}
	return at.span.String()
}
