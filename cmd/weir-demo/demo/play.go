package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sim"
)

// play runs a story in virtual time: directly, or through weir with the policy.
func (s story) play(seed uint64, policy *weir.Policy) (*log, error) {
	w := sim.New(seed)
	defer w.Close()
	clock := w.Clock()
	m := newMachine(clock, w.Rand(), s.workers, s)
	c := &client{clock: clock, chance: func(d time.Duration) time.Duration { return time.Duration(w.Rand().Int64N(int64(d))) }}
	c.send = func(ctx context.Context, _ string) reply { return reply{ok: m.call(ctx) == nil} }
	if policy != nil {
		u, err := weir.New("api", *policy, weir.Options{Clock: clock, Rand: w.Rand()})
		if err != nil {
			return nil, err
		}
		c.send = through(u, m)
	}
	l := newLog(s, m)
	for i, name := range tenants {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		w.Go(func() {
			for at := s.next(r, 0, i); at < s.length; at += s.next(r, at, i) {
				_ = clock.Sleep(context.Background(), at-w.Now())
				w.Go(func() {
					ok := c.call(context.Background(), name)
					l.note(end{tenant: i, began: at, took: w.Now() - at, ok: ok})
				})
			}
		})
	}
	return l, w.Run()
}

// through calls the machine through weir as the sidecar does, and passes the content of refusals to the client.
func through(u *weir.Upstream, m *machine) func(context.Context, string) reply {
	return func(ctx context.Context, tenant string) reply {
		call := weir.Call{Safe: true, Keys: map[string]string{"tenant": tenant}}
		_, err := weir.Do(quiet{ctx}, u, call, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.call(ctx) })
		var refusal *weir.Refusal
		switch {
		case err == nil:
			return reply{ok: true}
		case errors.As(err, &refusal):
			return reply{after: refusal.RetryAfter}
		}
		_, gaveUp := errors.AsType[*retry.GaveUpError](err)
		return reply{final: gaveUp}
	}
}

// quiet is a context without a deadline: over HTTP a sidecar does not know when its caller will disconnect.
type quiet struct{ context.Context }

func (quiet) Deadline() (time.Time, bool) { return time.Time{}, false }
