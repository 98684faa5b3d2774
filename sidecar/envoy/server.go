package envoy

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe/trace"
)

// A Server is Envoy's rate limit service. It is safe for concurrent use.
type Server struct {
	rls.UnimplementedRateLimitServiceServer

	config  Config
	options Options
	store   fleet.Store
	clock   func() time.Time
	grpc    *grpc.Server
	health  *health.Server

	rules  atomic.Pointer[Rules]
	ahead  atomic.Int64 // how far the store's clock is ahead of the local clock
	known  sync.Map     // groups of domains that were announced to the store
	lane   uint64
	lastID atomic.Uint64

	requests, refused, failed, invalid, reloads, badReloads atomic.Uint64

	loading sync.Mutex // one reload at a time
	seen    string     // fingerprint of the files when they were last read
}

// New creates a Server on a store, which it does not close. The rules come from the configuration, which must be free
// of errors.
func New(c Config, store fleet.Store, o Options) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{config: c.withDefaults(), options: o, store: store, clock: o.Clock, lane: rand.Uint64()}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.lastID.Store(rand.Uint64())
	s.listenFor()
	if c.Rules != "" {
		s.seen = fingerprint(c.Rules)
		rules, err := Load(c.Rules)
		if err != nil {
			return nil, err
		}
		s.install(rules)
	}
	return s, nil
}

// id returns the id of the next store request.
func (s *Server) id() uint64 {
	return cmp.Or(s.lastID.Add(1), s.lastID.Add(1))
}

// group returns the group of a domain's counters.
func (s *Server) group(domain string) string { return short(s.config.Group + "/" + escape(domain)) }

// Stats returns counts of what the server has done.
func (s *Server) Stats() Stats {
	st := Stats{
		Requests: s.requests.Load(), Refused: s.refused.Load(), Failed: s.failed.Load(), Invalid: s.invalid.Load(),
		Reloads: s.reloads.Load(), BadReloads: s.badReloads.Load(),
	}
	if r := s.rules.Load(); r != nil {
		st.Domains, st.Limits = len(r.domains), r.limits
	}
	return st
}

// ShouldRateLimit implements the method of the rate limit service.
func (s *Server) ShouldRateLimit(ctx context.Context, req *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	if s.options.Tracer != nil {
		return s.traced(ctx, req)
	}
	return s.judge(ctx, req, nil)
}

// judge answers a request. of is its span, or nil.
func (s *Server) judge(ctx context.Context, req *rls.RateLimitRequest, of *trace.Call) (*rls.RateLimitResponse, error) {
	begin := time.Now()
	s.requests.Add(1)
	rules, err := s.check(req)
	if err != nil {
		s.invalid.Add(1)
		return nil, err
	}
	p := rules.plan(req, s.options.Veil)
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	err = s.decide(ctx, p)
	stepped(of, begin, p, err)
	if err != nil {
		return s.away(p, err, callerOf(ctx), begin)
	}
	resp := s.answer(req, p)
	blamed(of, p)
	s.decided(p, resp, callerOf(ctx), begin, false)
	p.free()
	return resp, nil
}

// maxDescriptors is more than any route sends.
const maxDescriptors = 256

// check refuses invalid requests. Without rules there are no limits.
func (s *Server) check(req *rls.RateLimitRequest) (*Rules, error) {
	if req.GetDomain() == "" {
		return nil, status.Error(codes.InvalidArgument, "the request has no domain: set it in the rate limit filter")
	}
	if len(req.GetDescriptors()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no descriptors: give the route rate_limits with actions")
	}
	if n := len(req.GetDescriptors()); n > maxDescriptors {
		return nil, status.Errorf(codes.InvalidArgument, "the request has %d descriptors; at most %d are allowed", n, maxDescriptors)
	}
	for i, d := range req.GetDescriptors() {
		if len(d.GetEntries()) == 0 {
			return nil, status.Errorf(codes.InvalidArgument, "descriptor %d of the request has no entries", i)
		}
		if o := d.GetLimit(); o != nil && unitName(unit(o.GetUnit())) == "" {
			return nil, status.Errorf(codes.InvalidArgument, "descriptor %d of the request has a limit with the unit %v", i, o.GetUnit())
		}
	}
	rules := s.rules.Load()
	if rules == nil {
		rules = new(Rules)
	}
	return rules, nil
}

// away responds if the store does not reply.
func (s *Server) away(p *plan, err error, caller string, begin time.Time) (*rls.RateLimitResponse, error) {
	s.failed.Add(1)
	if !errors.Is(err, context.Canceled) { // the caller canceled, which does not indicate a failure of the store
		s.known.Clear() // the store may have lost its state
	}
	if f := s.options.Events.Failed; f != nil {
		f(p.domain, err)
	}
	if s.config.OnStoreError == Fail {
		return nil, s.storeError(err)
	}
	resp := &rls.RateLimitResponse{OverallCode: okay}
	for i := range p.places {
		at := &p.places[i]
		st := &rls.RateLimitResponse_DescriptorStatus{Code: okay}
		if at.counter != nil && s.config.OnStoreError == Deny && !at.shadow && !at.soft && at.hits >= 0 {
			st.Code, resp.OverallCode = over, over
		}
		resp.Statuses = append(resp.Statuses, st)
	}
	s.decided(p, resp, caller, begin, true)
	return resp, nil
}

// storeError returns the gRPC error for a store that did not reply. Only Events.Failed gets the store's error, which
// may contain addresses.
func (s *Server) storeError(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Errorf(codes.DeadlineExceeded, "the store of rate limits did not answer within %v", s.config.Timeout)
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller left")
	}
	return status.Error(codes.Unavailable, "the store of rate limits failed")
}
