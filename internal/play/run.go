package play

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sim"
)

// afterwards is how long a run waits for calls after the end of a story, in addition to what callers wait. Calls that
// still run then count as not answered.
const afterwards = 30 * time.Second

// A run is one way of a story in virtual time.
type run struct {
	story   *Story
	world   *sim.World
	machine *Machine
	log     *Log
	send    [len(Tenants)]func(context.Context, Request) Reply
}

// Play runs a story in virtual time: through weir with a policy, or directly if it is nil. If ctx ends earlier, the
// score covers the story until then. The seed determines all random numbers.
func (s *Story) Play(ctx context.Context, seed uint64, policy *weir.Policy, store *Store) (*Score, error) {
	w := sim.New(seed)
	defer w.Close()
	r := &run{story: s, world: w}
	r.machine = NewMachine(w.Clock(), w.Rand(), s)
	r.log = NewLog(s, r.machine)
	var err error
	switch {
	case policy == nil:
		r.direct()
	case s.Processes > 0:
		err = r.fleet(policy, store)
	default:
		err = r.single(policy)
	}
	if err != nil {
		return nil, err
	}
	r.callers(seed)
	if err := r.until(ctx); err != nil {
		return nil, err
	}
	return r.log.Score(), nil
}

// until runs the world to the end of the story, or to the end of ctx.
func (r *run) until(ctx context.Context) error {
	const step = time.Second
	for at := step; at < r.story.Length; at += step {
		if err := r.world.RunUntil(at); err != nil {
			return err
		}
		if ctx.Err() != nil {
			r.log.cut(at)
			return nil
		}
	}
	return r.world.RunUntil(r.story.Length + attempts*r.story.Callers.patience() + afterwards)
}

func (r *run) direct() {
	for i := range r.send {
		r.send[i] = func(ctx context.Context, q Request) Reply { return reply(r.machine.Call(ctx, q.Key)) }
	}
}

// single puts one process with weir between callers and machine.
func (r *run) single(p *weir.Policy) error {
	u, err := weir.New("api", *p, weir.Options{Clock: r.world.Clock(), Rand: r.world.Rand(), Events: r.events()})
	for i := range r.send {
		r.send[i] = r.through(u)
	}
	return err
}

func (r *run) events() weir.Events {
	return weir.Events{Breaker: func(e weir.BreakerEvent) {
		if e.To == breaker.Open && e.From != breaker.Open {
			r.log.opened(r.world.Now())
		}
	}}
}

// through calls the machine through weir as the sidecar does, and passes the content of refusals to the client.
func (r *run) through(u *weir.Upstream) func(context.Context, Request) Reply {
	c := &r.story.Callers
	return func(ctx context.Context, q Request) Reply {
		call := weir.Call{Operation: c.Operation, Safe: !c.Unsafe, Cost: c.Cost, Keys: make(map[string]string, len(c.Scopes))}
		for _, scope := range c.Scopes {
			call.Keys[scope] = q.Tenant
		}
		_, err := weir.Do(quiet{ctx}, u, call, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.machine.Call(ctx, q.Key) })
		var refusal *weir.Refusal
		if errors.As(err, &refusal) {
			r.log.refused(r.world.Now())
			return Reply{After: refusal.RetryAfter}
		}
		if _, gaveUp := errors.AsType[*retry.GaveUpError](err); gaveUp {
			return Reply{Final: true}
		}
		return reply(err)
	}
}

// reply returns what a caller learns from an answer of the machine.
func reply(err error) Reply {
	if r, ok := errors.AsType[*refused](err); ok {
		return Reply{After: r.o.Hint.After}
	}
	return Reply{OK: err == nil}
}

// quiet is a context without a deadline: over HTTP a sidecar does not know when its caller will disconnect.
type quiet struct{ context.Context }

func (quiet) Deadline() (time.Time, bool) { return time.Time{}, false }

// callers starts the calls of all tenants.
func (r *run) callers(seed uint64) {
	clock, s := r.world.Clock(), r.story
	keys := 0
	for i, name := range Tenants {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		c := &Client{Clock: clock, Rand: r.world.Rand(), Kind: s.Callers.Client, Patience: s.Callers.patience(), Send: r.send[i]}
		r.world.Go(func() {
			for at := s.Next(random, 0, i); at < s.Length; at += s.Next(random, at, i) {
				_ = clock.Sleep(context.Background(), at-r.world.Now())
				key := 0
				if n := s.Machine.Keys.Count; n > 0 {
					if key = keys; !s.Machine.Keys.InTurn {
						key = random.IntN(n)
					}
					keys++
				}
				call := r.log.Begin(i, at)
				r.world.Go(func() {
					ok := c.Call(context.Background(), Request{name, key})
					r.log.End(call, r.world.Now()-at, ok)
				})
			}
		})
	}
}

// Validate returns an error if a story needs too much of the machine that plays it.
func (s *Story) Validate() error {
	const mostCalls, mostWaiting, mostWorkers = 5_000_000, 100_000, 10_000
	peak, total := s.Callers.Ask, s.Callers.Ask*s.Length.Seconds()
	for i := range s.Troubles {
		if t := &s.Troubles[i]; t.Kind == Flood {
			extra := (t.Times - 1) * s.Callers.Ask / float64(len(Tenants))
			peak, total = peak+extra, total+extra*(t.To-t.From).Seconds()
		}
	}
	if total > mostCalls {
		return fmt.Errorf("makes %.3g calls: want at most %d; shorten the story or lower ask", total, mostCalls)
	}
	if waiting := peak * attempts * (s.Callers.patience() + time.Second).Seconds(); waiting > mostWaiting {
		return fmt.Errorf("up to %.3g callers wait at the same time: want at most %d; lower ask or patience", waiting, mostWaiting)
	}
	if n, _ := s.Machine.workers(); n > mostWorkers || s.Machine.Does > 1e9 {
		return fmt.Errorf("the machine has %d workers (does times takes): want at most %d; lower one of them", n, mostWorkers)
	}
	return nil
}
