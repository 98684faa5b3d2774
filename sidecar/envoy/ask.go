package envoy

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A step is the purpose of one store call.
type step uint8

const (
	look   step = iota // charges nothing
	charge             // charges all counters, or none
	giveBack
)

// decide makes the store calls of a plan. It takes one call, and a second one if the request mixes charges with
// checks or with returned hits, because a store does not refuse for a check and always accepts returned hits.
func (s *Server) decide(ctx context.Context, p *plan) error {
	if len(p.counters) == 0 {
		return nil
	}
	var err error
	if p.home, err = s.home(ctx, p.domain); err != nil {
		return err
	}
	for _, ask := range [...]func(context.Context, *plan) error{s.peek, s.take, s.refund} {
		if err := ask(ctx, p); err != nil || p.refused {
			return err
		}
	}
	return nil
}

// peek reads the counters if the request checks some, or changes none.
func (s *Server) peek(ctx context.Context, p *plan) error {
	if !p.closed && !p.checks && (p.charges || p.returns) {
		return nil
	}
	err := s.ask(ctx, p, look)
	p.refused = err == nil && (p.closed || p.exhausted())
	return err
}

// take charges the counters. If counters that cannot refuse the request refused it, take repeats the call without
// them.
func (s *Server) take(ctx context.Context, p *plan) error {
	if !p.charges {
		return nil
	}
	err := s.ask(ctx, p, charge)
	if err == nil && p.refused && p.excuse() {
		err = s.ask(ctx, p, charge)
	}
	return err
}

// refund returns hits.
func (s *Server) refund(ctx context.Context, p *plan) error {
	if !p.returns {
		return nil
	}
	return s.ask(ctx, p, giveBack)
}

func (p *plan) exhausted() bool {
	for i := range p.counters {
		if p.counters[i].exhausted() {
			return true
		}
	}
	return false
}

// excuse marks limits that refused although they must not refuse a request. A store that has lost its state may count
// everything as used up. excuse reports whether it marked any.
func (p *plan) excuse() bool {
	any := false
	for i := range p.counters {
		c := &p.counters[i]
		if c.open() && (c.grant.Left < c.hits || c.grant.Paused > 0) {
			c.excused, any = true, true
		}
	}
	return any
}

// home returns the group of a domain's counters, after announcing it to the store.
func (s *Server) home(ctx context.Context, domain string) (group string, err error) {
	if known, ok := s.known.Load(domain); ok {
		return known.(string), nil
	}
	group = s.group(domain)
	if !s.config.Cold {
		if err := s.store.Init(ctx, group); err != nil {
			return "", err
		}
	}
	s.known.Store(domain, group)
	return group, nil
}

// ask makes one store call. It repeats the call if the store's clock differs from the estimate.
func (s *Server) ask(ctx context.Context, p *plan, what step) error {
	for try := 0; ; try++ {
		a := s.fill(p, what)
		var err error
		if len(a.Claims) > 0 {
			err = s.store.Take(ctx, a)
		}
		if !a.Now.IsZero() {
			s.ahead.Store(int64(a.Now.Sub(s.clock())))
		}
		if errors.Is(err, fleet.ErrWindow) && try < 3 {
			continue
		}
		if err == nil {
			p.take(a)
		}
		return err
	}
}

// now returns the estimated time of the store's clock.
func (s *Server) now() time.Time { return s.clock().Add(time.Duration(s.ahead.Load())) }

func (s *Server) fill(p *plan, what step) *fleet.Ask {
	a := &p.ask
	*a = fleet.Ask{Group: p.home, ID: s.id(), Lane: s.lane, Claims: a.Claims[:0], Settle: a.Settle[:0], Grants: a.Grants}
	if what == charge {
		a.Copies = 1
	}
	now := s.now()
	for i := range p.counters {
		c := &p.counters[i]
		c.windows = c.quota.windows(now)
		if c.closed() {
			c.grant.Reset = c.windows.End.Sub(now)
			continue
		}
		if c.excused {
			continue
		}
		claim := fleet.Claim{Rule: &c.store, Key: c.key, Windows: c.windows}
		if what == charge {
			claim.Cost = max(0, c.hits)
		}
		a.Claims = append(a.Claims, claim)
		if what == giveBack && c.hits < 0 {
			a.Settle = append(a.Settle, fleet.Settlement{
				Rule: &c.store, Key: c.key, Windows: c.windows,
				Back: -c.hits, Mark: fleet.Mark{At: c.windows.Start.UnixMicro()},
			})
		}
	}
	return a
}

// take reads the reply.
func (p *plan) take(a *fleet.Ask) {
	p.refused = a.Granted < a.Copies
	n := 0
	for i := range p.counters {
		if c := &p.counters[i]; !c.closed() && !c.excused && n < len(a.Grants) {
			c.grant = a.Grants[n]
			n++
		}
	}
}
