package weir

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A View is the state of an upstream at an instant, for people and metrics. Its parts are read one after the other
// while calls continue, so they may differ by a few units.
type View struct {
	Name        string
	Limits      []LimitView
	Breakers    []breaker.View
	RetriesLeft int64       // what the budget would grant now; for a quota, its tokens
	Pauses      []PauseView // the longest first
	Paused      int         // number of pauses
	Flights     []FlightView
}

// A LimitView is the state of one limiter: a limit and a key. Limit is the configuration. Level has the values in
// force, which differ for an adaptive rate or during a pause.
type LimitView struct {
	Limit limit.Limit
	Key   string
	Level limit.Level
	Keys  int // number of keys of the limit; set only for the key ""

	// Unknown reports that Level has no meaning; see LookAt.
	Unknown bool
}

// Look returns the state of the upstream: each limit with at most the given number of keys, each breaker, and the
// pauses, up to the larger of that number and 100. It changes nothing.
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

// fewestPauses is the smallest bound for the pauses that Look returns.
const fewestPauses = 100

// left returns how many retries the budget would grant now; 0 if it does not know.
func (v *live) left(now time.Duration) int64 {
	if p, ok := v.purse.(interface{ Left(time.Duration) int64 }); ok {
		return p.Left(now)
	}
	return 0
}

// lookLimit returns the state of a limit, with at most the given number of keys. Without a scope, the key "" is the
// limit itself. With a scope, it is the limiter shared by all keys beyond the maximum, and is returned only if it was
// used.
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

// LookAt returns the limits whose scopes are among the keys, as they apply to a call with these keys. It creates no
// state for new keys, so any key may be asked for. It does not ask the fleet's store. A shared limit is Unknown if
// the store has not reported the key to this process yet. Otherwise Level.Age is the age of the report.
func (u *Upstream) LookAt(keys map[string]string) []LimitView {
	now, v := u.clock.Now(), u.live.Load()
	var out []LimitView
	for _, r := range v.registries {
		l := *r.Limit()
		names := scopes.Names(l.Scope)
		if _, known := keys[l.If.Scope]; l.Scope == "" || !hasAll(keys, names) || known && !l.If.Picks(keys[l.If.Scope]) {
			continue
		}
		key := keys[l.Scope]
		if len(names) > 1 {
			key = scopes.Key(names, keys)
		}
		key = boundedKey(key)
		level, ok := r.Peek(now, key)
		out = append(out, LimitView{Limit: l, Key: key, Level: v.held(now, &l, key, level), Unknown: !ok})
	}
	return out
}

// LookKey returns the state of a known key of a limit; none if the key or the limit is unknown. It changes nothing.
func (u *Upstream) LookKey(name, key string) (out []LimitView) {
	now, v := u.clock.Now(), u.live.Load()
	key = boundedKey(key)
	for _, r := range v.registries {
		l := *r.Limit()
		if m := r.Known(key); m != nil && l.Name == name {
			level := v.level(now, &l, key, m)
			out = append(out, LimitView{Limit: l, Key: key, Level: level, Unknown: level.Age >= bucket.Never})
		}
	}
	return out
}

// LookWithin returns the known keys of limits that combine some of the given scopes with further scopes: with the key of a
// run, each tool of the run. It returns at most the given number of them, first those with the least remaining. It changes
// nothing, and omits keys that the fleet's store has not reported to this process yet.
func (u *Upstream) LookWithin(keys map[string]string, most int) []LimitView {
	now, v := u.clock.Now(), u.live.Load()
	var out []LimitView
	least := func() {
		slices.SortStableFunc(out, func(a, b LimitView) int { return cmp.Compare(a.share(), b.share()) })
		out = out[:min(most, len(out))]
	}
	for _, r := range v.registries {
		l := *r.Limit()
		names := scopes.Names(l.Scope)
		if _, known := keys[l.If.Scope]; len(names) < 2 || hasAll(keys, names) || known && !l.If.Picks(keys[l.If.Scope]) {
			continue
		}
		for key, m := range r.All() {
			if !hasSome(names, key, keys) {
				continue
			}
			if level := v.level(now, &l, key, m); level.Age < bucket.Never {
				out = append(out, LimitView{Limit: l, Key: key, Level: level})
			}
			if len(out) > 2*most {
				least()
			}
		}
	}
	least()
	return out
}

// share returns the remaining part of a limit, from 0 to 1.
func (v LimitView) share() float64 { return float64(v.Level.Left) / float64(max(1, v.Level.Full)) }

// hasSome reports whether the key of a combination has all values that are given, and at least one is.
func hasSome(names []string, key string, given map[string]string) bool {
	values, ok := scopes.Values(names, key)
	found := false
	for name, value := range values {
		want, isGiven := given[name]
		if isGiven && value != want {
			return false
		}
		found = found || isGiven
	}
	return ok && found
}

// hasAll reports whether there is a key for each scope.
func hasAll(keys map[string]string, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := keys[name]; return !ok })
}

// A KeyView is the state of a key of a limit.
type KeyView struct {
	Limit *limit.Limit // must not be changed
	Key   string       // limit.Other for all keys that share a limiter
	Level limit.Level  // without pauses
}

// LookKeys yields the keys of limits whose keys are labels (limit.Limit.Labels), one at a time and in no order,
// because a limit can have 400,000. It changes nothing. It omits calls without a key, and keys that the fleet's store
// has not reported to this process yet.
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

// level returns the state of a key's limiter, including pauses that the limiter does not know.
func (v *live) level(now time.Duration, l *limit.Limit, key string, m *limit.Limiter) limit.Level {
	return v.held(now, l, key, m.Look(now))
}

// held adds the pauses of a limit to a level.
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

// Now returns the present instant of the upstream's clock. Its zero has no meaning: compare instants of one clock
// only, not of two processes.
func (u *Upstream) Now() time.Duration { return u.clock.Now() }

// Never is the RetryAfter of a call that can never be allowed.
const Never = bucket.Never
