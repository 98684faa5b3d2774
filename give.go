package weir

import (
	"errors"
	"fmt"
)

// ErrSharedBudget reports that a budget is shared by several processes, so that no process can give units of it back.
var ErrSharedBudget = errors.New("several processes share this budget, and no process knows what the others hold: units cannot be given back; raise the limit instead, or wait for its reset")

// Give returns up to n spent units of a budget, a limit in dollars, to its present window: millionths of a dollar. key is the
// key of the limit, "" without a scope. It returns how many units were returned: at most what calls have spent in the window.
// Calls that wait proceed.
func (u *Upstream) Give(name, key string, n int64) (given int64, err error) {
	now := u.clock.Now()
	key = boundedKey(key)
	for _, r := range u.live.Load().registries {
		l := r.Limit()
		if l.Name != name {
			continue
		}
		switch {
		case !l.IsBudget():
			return 0, fmt.Errorf("limit %s: counts %s, and only units of limits in dollars can be given back", name, l.UnitName())
		case r.Shared():
			return 0, fmt.Errorf("limit %s: %w", name, ErrSharedBudget)
		}
		given, ok := r.Give(now, key, n)
		if !ok {
			return 0, fmt.Errorf("limit %s: no call with key %q is known", name, key)
		}
		if given > 0 {
			u.lines.Kick()
		}
		return given, nil
	}
	return 0, fmt.Errorf("limit %q: %s has no such limit", name, u.name)
}
