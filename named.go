package weir

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// named are operations that nobody declared. Beyond mostNamed they have no names of
// their own.
type named struct {
	plans atomic.Pointer[map[name]*plan]
	mu    sync.Mutex
}

type name struct {
	plan *plan
	name string
}

const mostNamed = 200

func (d *named) plan(base *plan, as string) *plan {
	key := name{base, as}
	if all := d.plans.Load(); all != nil {
		if p := (*all)[key]; p != nil {
			return p
		}
	}
	return d.add(key)
}

func (d *named) add(key name) *plan {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := map[name]*plan{}
	if all := d.plans.Load(); all != nil {
		if p := (*all)[key]; p != nil {
			return p
		}
		maps.Copy(more, *all)
	}
	if len(key.name) > longestKey || len(more) >= mostNamed {
		return key.plan
	}
	p := new(plan)
	*p = *key.plan
	p.name, p.limits = key.name, slices.Clone(p.limits)
	p.bind(p.live.u.counts)
	more[key] = p
	d.plans.Store(&more)
	return p
}
