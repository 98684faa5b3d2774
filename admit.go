package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// waits passes the gates that make the call wait, until the instant at most, or until the
// other for a slot. Once it has waited for a slot, the limits' time begins anew.
func (p *Permit) waits(ctx context.Context, d Decision, now, until, slot time.Duration, c *Call) (_ Decision, _ time.Duration, err error) {
	for asked := now; d.Allowed && err == nil; {
		switch {
		case d.RetryAfter == elsewhere, d.RetryAfter != 0 && p.moved():
			d = p.moves(now, max(0, until-now), c)
		case d.RetryAfter == inLine:
			d, now, err = p.stand(ctx, now, until, c)
		case d.RetryAfter == askStore:
			d, now, err = p.fetch(ctx, now, max(0, until-now), c.Priority)
		case d.RetryAfter > 0:
			d, now, err = p.doze(ctx, until, d.RetryAfter)
		case now > asked:
			d, asked = p.hears(now), now
		case !p.enter(now):
			d, now, err = p.board(ctx, now, slot, c)
			until = min(slot, max(until, later(now, p.longest())))
		default:
			return d, now, nil
		}
	}
	return d, now, err
}

// doze waits for a turn that has been booked, or for the end of a pause, and asks again.
func (p *Permit) doze(ctx context.Context, until, d time.Duration) (Decision, time.Duration, error) {
	opened, err := p.u.sleep(ctx, p.breaker, min(d, nap))
	now := p.u.clock.Now()
	if opened && err == nil {
		if d := p.hears(now); !d.Allowed {
			return d, now, nil
		}
	}
	if err != nil {
		return Decision{}, now, err
	}
	return p.turn(now, max(0, until-now)), now, nil
}

// tooSlow is the decision about a call whose own deadline has passed while it waited for its
// turn. It was not sent: that is a refusal, and says nothing of the upstream.
func (p *Permit) tooSlow(now time.Duration) Decision {
	if i := p.shared(); p.why < 0 && int(i) < p.limits.Len() && p.limits.Charge(int(i)).Registry.Shared() {
		p.why = i // it waited for the store
	}
	if p.why >= 0 {
		c, w := p.limits.Charge(int(p.why)), p.limits.Lacks(now, int(p.why))
		return p.judge(now, limit.Verdict{Wait: max(c.Registry.Get(now, c.Key).Ask(now, c.Cost), soon, w.Wait), Cause: limit.Cause{Why: int(p.why), Lack: w.Lack}})
	}
	if p.flight != nil && p.slot == 0 {
		return p.full(now)
	}
	p.undo(now)
	return Decision{Reason: RateLimited, RetryAfter: soon}
}

// soon is when to ask again where nobody knows better.
const soon = time.Second
