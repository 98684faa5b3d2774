package weir

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
)

// A View is what an upstream looks like at an instant, for people and metrics.
type View struct {
	Name        string
	Limits      []LimitView
	Breakers    []breaker.View
	RetriesLeft int64 // what the budget would grant now; for a quota, its tokens
	Pauses      []PauseView
	Pools       []PoolView // those that are paused
	Flights     []FlightView
}

// A LimitView is one limiter: a limit and a key.
type LimitView struct {
	Limit limit.Limit
	Key   string
	Level limit.Level
	Keys  int // how many keys the limit has; only with the key ""
}

// A PauseView is an operation without limits that is paused.
type PauseView struct {
	Operation string
	Left      time.Duration
}

// A PoolView is a pool that a hint of the upstream holds; see Call.
type PoolView struct {
	Pool  string
	Left  time.Duration
	Quota bool // a quota of a day or longer is spent
}

// Look shows the upstream: each limit, with at most so many of its keys,
// each breaker, and at most so many paused pools. It changes nothing.
func (u *Upstream) Look(keys int) View {
	now, v := u.clock.Now(), u.live.Load()
	view := View{Name: u.name, RetriesLeft: v.left(now), Pools: u.pauses.pools(now, keys)}
	for _, r := range v.registries {
		view.Limits = append(view.Limits, lookLimit(now, r, keys)...)
	}
	for _, b := range v.allBreakers() {
		view.Breakers = append(view.Breakers, b.Look(now))
	}
	for _, f := range v.flights() {
		view.Flights = append(view.Flights, f.look(now))
	}
	for name, p := range v.plans {
		if left := time.Duration(p.paused.Load()) - now; left > 0 {
			view.Pauses = append(view.Pauses, PauseView{name, left})
		}
	}
	return view
}

func (v *live) left(now time.Duration) int64 {
	if p, ok := v.purse.(interface{ Left(time.Duration) int64 }); ok {
		return p.Left(now)
	}
	return 0
}

func lookLimit(now time.Duration, r *limit.Registry, keys int) []LimitView {
	l := *r.Limit()
	var out []LimitView
	shown := 0
	for key, m := range r.All() {
		if key == "" {
			if l.Scope == "" || keys == 0 || m.Look(now).Left < l.Most() {
				out = append(out, LimitView{l, key, m.Look(now), r.Len()})
			}
			continue
		}
		if shown++; shown > keys {
			break
		}
		out = append(out, LimitView{Limit: l, Key: key, Level: m.Look(now)})
	}
	return out
}

// Now is the present instant of the upstream's clock.
func (u *Upstream) Now() time.Duration { return u.clock.Now() }

// Never is the RetryAfter of what can never be allowed.
const Never = bucket.Never
