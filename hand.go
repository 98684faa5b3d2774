package weir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Pause stops all calls of a subject by hand, for so long or, if that is 0, until Resume;
// for pause.Longest at most. It holds in the whole fleet, or in this process alone if here
// is set. The error says which subjects there are.
func (u *Upstream) Pause(of pause.Subject, length time.Duration, here bool) error {
	if length < 0 || length > pause.Longest {
		return fmt.Errorf("for %v: want a time up to %d days", length, pause.Longest/(24*time.Hour))
	}
	said := length > 0
	if !said {
		length = pause.Longest
	}
	if err := u.knows(of); err != nil {
		return err
	}
	now, why := u.clock.Now(), pause.Hand
	if here {
		why = pause.Here
	}
	u.hold(now, of, of.Key, why, pause.Span{Until: later(now, length), Known: said})
	u.lines.Kick()
	e := u.pauses.In(now, of)
	u.tellPause(u.options.Events.Paused, now, of, &e, ByHand)
	return nil
}

// Resume lifts the pauses of a subject before their time, whoever asked for them, and
// those of all that it stands for: of a limit those of its keys, too, and of the upstream
// all. It says how many there were. Others of the fleet hear of it, unless here is set:
// then it is this process alone that goes on. The error says which subjects there are.
func (u *Upstream) Resume(of pause.Subject, here bool) (lifted int, err error) {
	now := u.clock.Now()
	known, all := u.knows(of), u.pauses.Lift(now, of, here)
	if len(all) == 0 && known != nil {
		return 0, known
	}
	u.resumed(now, all, ByHand)
	u.share()
	return len(all), nil
}

// knows says what is wrong with a subject: a pause of what there is not would hold nobody.
func (u *Upstream) knows(of pause.Subject) error {
	v := u.live.Load()
	switch of.Kind {
	case pause.Upstream:
		return nil
	case pause.Pool:
		if of.Name == "" {
			return fmt.Errorf("pool: must not be empty")
		}
		return nil
	case pause.Limit, pause.Key:
		return v.knowsLimit(of)
	case pause.Operation:
		if v.plans[of.Name] != nil {
			return nil
		}
		return fmt.Errorf("operation %q: %s has none of that name, but %s", of.Name, u.name, listed(slices.Sorted(maps.Keys(v.plans))))
	}
	return fmt.Errorf("%v: nothing to pause", of)
}

func (v *live) knowsLimit(of pause.Subject) error {
	var names []string
	for i := range v.policy.Limits {
		l := &v.policy.Limits[i]
		if l.Name == of.Name {
			return knowsKey(l, of)
		}
		names = append(names, l.Name)
	}
	return fmt.Errorf("limit %q: there is none of that name, but %s", of.Name, listed(names))
}

func knowsKey(l *limit.Limit, of pause.Subject) error {
	switch {
	case of.Kind == pause.Limit || of.Scope == l.Scope && l.Scope != "":
		return nil
	case l.Scope == "":
		return fmt.Errorf("key %q: limit %s is one for all; leave key out", of.Key, l.Name)
	}
	return fmt.Errorf("key %q: limit %s is kept by %s, not by %s", of.Key, l.Name, l.Scope, of.Scope)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
