package envoy

import (
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Events tell what a Server does. What is nil is unheard. They are called in the
// path of requests, so they must not block.
type Events struct {
	Decided  func(Decision)
	Failed   func(domain string, err error) // the store did not answer
	Reloaded func(Reload)
}

// A Decision is a request that was answered.
type Decision struct {
	Domain  string
	Caller  string // as Auth named it
	Refused bool
	Failed  bool // the store did not answer; OnStoreError did
	Took    time.Duration
	Limits  []Limited // in the order of the descriptors that met a limit
}

// A Limited is what a limit said of a request.
type Limited struct {
	Limit  string // as its rule stands in the file: "domain.key_value.key"; with the values of the request only where the rules ask for it
	Hits   int64  // charged, or below 0 given back, unless the request was refused
	Left   int64
	Over   bool // the limit was exceeded, or would have been
	Refuse bool // and that refused the request
	Shadow bool // the limit is in shadow_mode
	Quota  bool // the limit is in quota_mode
}

// A Reload is an attempt to replace the rules.
type Reload struct {
	Domains, Limits int   // of the rules that hold now
	Err             error // why they are still the old ones
}

// Stats are what a Server has done since it was made.
type Stats struct {
	Requests, Refused, Failed uint64 // Failed: the store did not answer
	Invalid                   uint64 // requests without domain or descriptors
	Reloads, BadReloads       uint64
	Domains, Limits           int // of the rules that hold now
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
