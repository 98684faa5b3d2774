package weir

import (
	"iter"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A View is what an upstream looks like at an instant, for people and metrics. Its parts are read
// one after the other while calls go on, so that they need not agree to the last unit.
type View struct {
	Name        string
	Limits      []LimitView
	Breakers    []breaker.View
	RetriesLeft int64       // what the budget would grant now; for a quota, its tokens
	Pauses      []PauseView // those that last longest first
	Paused      int         // how many pauses there are
	Flights     []FlightView
}

// A LimitView is one limiter: a limit and a key. Limit is as it was configured; what is in force
// now, where a rate learns or a pause holds, is in Level.
type LimitView struct {
	Limit limit.Limit
	Key   string
	Level limit.Level
	Keys  int // how many keys the limit has; only with the key ""

	// Unknown says that Level means nothing: see LookAt.
	Unknown bool
}

// Look shows the upstream: each limit, with at most so many of its keys,
// each breaker, and at most so many pauses. It changes nothing.
func (u *Upstream) Look(keys int) View {
	now, v := u.clock.Now(), u.live.Load()
	view := View{Name: u.name, RetriesLeft: v.left(now)}
	view.Pauses, view.Paused = u.pauses.look(now, max(keys, fewestPauses))
	for _, r := range v.registries {
		view.Limits = append(view.Limits, v.lookLimit(now, r, keys)...)
	}
	for _, b := range v.allBreakers() {
		view.Breakers = append(view.Breakers, b.Look(now))
	}
	for _, f := range v.flights() {
		view.Flights = append(view.Flights, f.look(now))
	}
	return view
}

// fewestPauses is how many pauses are shown at least, however few keys are.
const fewestPauses = 100

// left is what the purse would pay for now; 0 for one that does not know.
func (v *live) left(now time.Duration) int64 {
	if p, ok := v.purse.(interface{ Left(time.Duration) int64 }); ok {
		return p.Left(now)
	}
	return 0
}

// lookLimit shows a limit, with so many of its keys at most. The key "" stands for the limit itself if
// it has no scope; else for all keys together for which there was no room, and is shown only if
// they have used something.
func (v *live) lookLimit(now time.Duration, r *limit.Registry, keys int) []LimitView {
	l := *r.Limit()
	var out []LimitView
	shown := 0
	for key, m := range r.All() {
		if key == "" {
			if l.Scope == "" || keys == 0 || m.Look(now).Left < l.Most() {
				out = append(out, LimitView{Limit: l, Key: key, Level: v.level(now, &l, key, m), Keys: r.Len()})
			}
			continue
		}
		if shown++; shown > keys {
			break
		}
		out = append(out, LimitView{Limit: l, Key: key, Level: v.level(now, &l, key, m)})
	}
	return out
}

// LookAt shows those limits whose scope is one of the keys, as they are for a call with these. Nothing is kept of keys that
// are new, so that it may be asked of any. Of limits that a fleet shares the store is not asked: those are Unknown of
// which it has not spoken yet to this process under the key, and of others Level.Age says when it did.
func (u *Upstream) LookAt(keys map[string]string) []LimitView {
	now, v := u.clock.Now(), u.live.Load()
	var out []LimitView
	for _, r := range v.registries {
		l := *r.Limit()
		key, said := keys[l.Scope]
		if _, known := keys[l.If.Scope]; l.Scope == "" || !said || known && !l.If.Picks(keys[l.If.Scope]) {
			continue
		}
		key = boundedKey(key)
		level, ok := r.Peek(now, key)
		out = append(out, LimitView{Limit: l, Key: key, Level: v.held(now, &l, key, level), Unknown: !ok})
	}
	return out
}

// A KeyView is a key of a limit at an instant.
type KeyView struct {
	Limit *limit.Limit // not to be changed
	Key   string       // limit.Other for all together that share a limiter
	Level limit.Level  // but for pauses
}

// LookKeys shows the keys of those limits whose keys are labels (limit.Limit.Labels), one after the other in no order, as
// a limit can have 400,000. It changes nothing. Calls without a key are left out, and keys of which the store of a fleet has
// not spoken yet to this process.
func (u *Upstream) LookKeys() iter.Seq[KeyView] {
	return func(yield func(KeyView) bool) {
		now := u.clock.Now()
		for _, r := range u.live.Load().registries {
			l := r.Limit()
			if !l.Labels {
				continue
			}
			for key, m := range r.All() {
				if key == "" {
					continue
				}
				if v := (KeyView{l, key, m.Look(now)}); v.Level.Age < bucket.Never && !yield(v) {
					return
				}
			}
		}
	}
}

// level is what the limiter of a key looks like, with what the limiter cannot know.
func (v *live) level(now time.Duration, l *limit.Limit, key string, m *limit.Limiter) limit.Level {
	return v.held(now, l, key, m.Look(now))
}

// held is a level with the pauses that hold a limit.
func (v *live) held(now time.Duration, l *limit.Limit, key string, level limit.Level) limit.Level {
	pauses := &v.u.pauses
	if pauses.Any(now) {
		for _, of := range [...]pause.Subject{pause.OfLimits(l.Name), pause.OfLimit(l.Name, l.Scope, key)} {
			e := pauses.In(now, of)
			level.Paused = max(level.Paused, e.Until()-now)
		}
	}
	return level
}

// Now is the present instant of the upstream's clock. Instants count from some moment that means
// nothing, so that two of one clock can be compared, and not those of two processes.
func (u *Upstream) Now() time.Duration { return u.clock.Now() }

// Never is the RetryAfter of what can never be allowed.
const Never = bucket.Never
