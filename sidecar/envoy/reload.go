package envoy

import (
	"context"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Set replaces the rules immediately. Counters of limits with the same descriptor and unit continue. The server
// becomes ready with the first rules that have a domain. nil removes the rules.
func (s *Server) Set(rules *Rules) {
	s.install(rules)
	s.reloaded(nil)
}

func (s *Server) install(rules *Rules) {
	s.rules.Store(rules)
	state := healthpb.HealthCheckResponse_NOT_SERVING
	if rules != nil && len(rules.domains) > 0 {
		state = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
	s.health.SetServingStatus(service, state)
}

// Reload reads the configured rules again. If they contain an error, the old rules stay in force.
func (s *Server) Reload() error {
	put, err := s.Prepare()
	if err == nil {
		put()
	}
	return err
}

// Prepare is the first step of Reload. Calling put puts the rules into force.
func (s *Server) Prepare() (put func(), err error) {
	s.loading.Lock()
	defer s.loading.Unlock()
	seen := fingerprint(s.config.Rules)
	rules, err := Load(s.config.Rules)
	if err != nil {
		s.seen = seen
		s.reloaded(err)
		return nil, err
	}
	return func() {
		s.loading.Lock()
		defer s.loading.Unlock()
		s.seen = seen
		s.install(rules)
		s.reloaded(nil)
	}, nil
}

func (s *Server) reloaded(err error) {
	if err == nil {
		s.reloads.Add(1)
	} else {
		s.badReloads.Add(1)
	}
	if f := s.options.Events.Reloaded; f != nil {
		st := s.Stats()
		f(Reload{Domains: st.Domains, Limits: st.Limits, Err: err})
	}
}

// Watch reloads the configured rules when their files have changed, until ctx is done. It compares the files'
// content, so any way of replacing them works.
func (s *Server) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.refresh()
		}
	}
}

func (s *Server) refresh() {
	now := fingerprint(s.config.Rules)
	s.loading.Lock()
	changed := now != s.seen
	s.loading.Unlock()
	if changed {
		s.Reload() // reports its error itself
	}
}
