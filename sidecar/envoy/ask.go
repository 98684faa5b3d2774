package envoy

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A step is what one call of the store does.
type step uint8

const (
	look   step = iota // takes nothing
	charge             // takes what the counters are charged, all or none
	giveBack
)

// decide asks the store for all that is planned. It takes one call, and one more for a
// request that mixes charges with checks or with hits that are given back: a store
// does not refuse for a check, and gives back whatever it grants.
func (s *Server) decide(ctx context.Context, p *plan) error {
	if len(p.counters) == 0 {
		return nil
	}
	if err := s.welcome(ctx, s.group(p.domain)); err != nil {
		return err
	}
	for _, ask := range [...]func(context.Context, *plan) error{s.peek, s.take, s.refund} {
		if err := ask(ctx, p); err != nil || p.refused {
			return err
		}
	}
	return nil
}

// peek looks at the counters if the request checks some, or changes none.
func (s *Server) peek(ctx context.Context, p *plan) error {
	if !p.closed && !p.checks && (p.charges || p.returns) {
		return nil
	}
	err := s.ask(ctx, p, look)
	p.refused = err == nil && (p.closed || p.exhausted())
	return err
}

// take charges the counters, those left out that refuse nobody if they have refused.
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

// refund gives hits back.
func (s *Server) refund(ctx context.Context, p *plan) error {
	if !p.returns {
		return nil
	}
	return s.ask(ctx, p, giveBack)
}

func (p *plan) exhausted() bool {
	for _, c := range p.counters {
		if c.exhausted() {
			return true
		}
	}
	return false
}

// excuse takes out limits that refuse nobody and did: a store that has lost its
// state may count everything as used up. It reports whether there were any.
func (p *plan) excuse() bool {
	any := false
	for _, c := range p.counters {
		if c.open() && (c.grant.Left < c.hits || c.grant.Paused > 0) {
			c.excused, any = true, true
		}
	}
	return any
}

// An opener is a store that takes what it does not know for used up, unless it was
// told that the group is new.
type opener interface {
	Init(ctx context.Context, group string) error
}

// welcome tells the store once of each group.
func (s *Server) welcome(ctx context.Context, group string) error {
	o, ok := s.store.(opener)
	if _, known := s.known.Load(group); known || !ok || s.config.Cold {
		return nil
	}
	if err := o.Init(ctx, group); err != nil {
		return err
	}
	s.known.Store(group, true)
	return nil
}

// ask makes one call of the store, and another if the store's clock is not where it
// was thought to be.
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

// now is the store's present, as far as is known.
func (s *Server) now() time.Time { return s.clock().Add(time.Duration(s.ahead.Load())) }

func (s *Server) fill(p *plan, what step) *fleet.Ask {
	a := &fleet.Ask{Group: s.group(p.domain), ID: s.id(), Lane: s.lane}
	if what == charge {
		a.Copies = 1
	}
	now := s.now()
	for _, c := range p.counters {
		c.windows = c.span.windows(now)
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

// take reads the answer.
func (p *plan) take(a *fleet.Ask) {
	p.refused = a.Granted < a.Copies
	i := 0
	for _, c := range p.counters {
		if !c.closed() && !c.excused && i < len(a.Grants) {
			c.grant = a.Grants[i]
			i++
		}
	}
}
