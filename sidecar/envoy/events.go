package envoy

import (
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Events are called by a Server during requests, so they must not block. Nil functions are not called.
type Events struct {
	Decided  func(Decision)
	Failed   func(domain string, err error) // the store did not reply
	Reloaded func(Reload)
}

// A Decision describes a response.
type Decision struct {
	Domain  string
	Caller  string // name from Auth
	Refused bool
	Failed  bool // the store did not reply; OnStoreError determined the response
	Took    time.Duration
	Limits  []Limited // in the order of the descriptors that match a limit
}

// A Limited is the result of a limit for a request.
type Limited struct {
	Limit  string // name in the rules: "domain.key_value.key"; with values of the request only where the rules request it
	Hits   int64  // charged, or if negative returned, unless the request was refused
	Left   int64
	Over   bool // the limit was exceeded, or would have been
	Refuse bool // and the limit refused the request
	Shadow bool // the limit is in shadow_mode
	Quota  bool // the limit is in quota_mode
}

// A Reload is an attempt to replace the rules.
type Reload struct {
	Domains, Limits int   // of the rules in force
	Err             error // why the old rules are still in force
}

// Stats count what a Server has done since its creation.
type Stats struct {
	Requests, Refused, Failed uint64 // Failed: the store did not reply
	Invalid                   uint64 // requests without domain or descriptors
	Reloads, BadReloads       uint64
	Domains, Limits           int // of the rules in force
}

func (s *Server) decided(p *plan, resp *rls.RateLimitResponse, caller string, begin time.Time, failed bool) {
	refused := resp.GetOverallCode() == over
	if refused {
		s.refused.Add(1)
	}
	if s.options.Events.Decided == nil {
		return
	}
	d := Decision{Domain: p.domain, Caller: caller, Refused: refused, Failed: failed, Took: time.Since(begin)}
	d.Limits = make([]Limited, 0, len(p.counters))
	for i := range p.places {
		at := &p.places[i]
		if at.counter == nil {
			continue
		}
		l := Limited{Limit: at.label, Hits: at.hits, Shadow: at.shadow, Quota: at.soft}
		if len(p.verdicts) > 0 {
			l.Left, l.Over, l.Refuse = p.verdicts[i].left, p.verdicts[i].over, p.verdicts[i].deny
		}
		d.Limits = append(d.Limits, l)
	}
	s.options.Events.Decided(d)
}
