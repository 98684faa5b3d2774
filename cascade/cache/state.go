package cache

import "time"

// A State is how an answer may be used.
type State uint8

const (
	Miss  State = iota // there is no answer
	Hit                // fresh: use it
	Stale              // use it and refresh it
	Old                // use it only if everything else fails
)

func (s State) String() string {
	switch s {
	case Hit:
		return "hit"
	case Stale:
		return "stale"
	case Old:
		return "old"
	}
	return "miss"
}

func (o *Options) state(now time.Time, e *Entry) (State, time.Duration) {
	age := e.age(now)
	switch past := age - o.ttl(e); {
	case age < 0:
		return Miss, 0
	case past < 0:
		return Hit, age
	case past < o.StaleWhileRevalidate:
		return Stale, age
	case past < o.StaleIfError:
		return Old, age
	}
	return Miss, 0
}

func (o *Options) ttl(e *Entry) time.Duration {
	if e.TTL > 0 {
		return e.TTL
	}
	return o.TTL
}

// keep returns the age at which an entry expires.
func (o *Options) keep(e *Entry) time.Duration {
	return o.ttl(e) + max(o.StaleWhileRevalidate, o.StaleIfError, 0)
}
