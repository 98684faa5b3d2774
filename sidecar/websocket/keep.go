package websocket

import (
	"context"
	"time"
)

// keep ends the session when it reaches its longest duration, when no message was sent for too long, or when a peer
// does not respond to a ping. A peer that has sent nothing for a while gets a ping. The goroutine that reads receives
// the pong.
func (s *Session) keep() {
	c := &s.Config
	every := min(c.Ping, orNever(c.Idle))
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	lifetime := time.NewTimer(orNever(c.Lifetime))
	defer lifetime.Stop()
	silent := time.Duration(0)
	for {
		select {
		case <-s.ctx.Done():
			s.end(ending{code: cut, upstream: cut, why: "weir has stopped"}) // unless there was another reason
			return
		case <-lifetime.C:
			s.end(ending{code: restart, why: "the connection has reached its longest duration"})
		case <-ticks.C:
			if silent = s.look(silent + every); c.Idle > 0 && silent >= c.Idle {
				s.end(ending{code: goingAway, why: "no message was sent for too long"})
			}
		}
	}
}

// look pings the sides that have sent nothing, and returns for how long neither has sent anything.
func (s *Session) look(silent time.Duration) time.Duration {
	for _, d := range []*side{s.caller, s.upstream} {
		if d.heard.Swap(false) {
			silent = 0
			continue
		}
		if s.busy(d) {
			continue
		}
		s.flows.Go(func() { s.ping(d) })
	}
	return silent
}

// ping sends a ping to a peer, and ends the session if there is no pong.
func (s *Session) ping(d *side) {
	ctx, cancel := context.WithTimeout(forever, s.Config.Ping) // the library would end the connection with its context
	defer cancel()
	err := d.conn.Ping(ctx)
	switch {
	case err == nil, s.ctx.Err() != nil, d.heard.Load(), s.busy(d):
	case d == s.caller:
		s.end(ending{code: cut, why: "the caller does not respond to pings"})
	default:
		s.end(ending{code: tryAgainLater, upstream: cut, why: "the upstream does not respond to pings"})
	}
}

// busy reports whether a write to a peer is in progress, or a message from it is being passed on. Both are bounded,
// and a pong may not be read before they end.
func (s *Session) busy(d *side) bool {
	reads := &s.up
	if d == s.upstream {
		reads = &s.down
	}
	return reads.holds.Load() || s.up.slow.Load() == d || s.down.slow.Load() == d
}

func orNever(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return never
}
