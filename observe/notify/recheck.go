package notify

import (
	"maps"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
)

// Recheck resolves open breakers that no longer exist: a breaker that a reload replaced, or that was evicted, never reports that
// it closed. u is the current upstream of that name, nil if there is none. Call Recheck after upstreams have changed, and
// periodically.
func (n *Notifier) Recheck(upstream string, u *weir.Upstream) {
	n.mu.Lock()
	before := maps.Clone(n.open[upstream])
	n.mu.Unlock()
	if len(before) == 0 {
		return
	}
	for key := range openOf(u) {
		delete(before, key)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	open := n.open[upstream]
	for key, at := range before {
		if open[key] == at { // it has not opened again meanwhile
			delete(open, key)
		}
	}
	if n.left(upstream) == 0 {
		n.ended(subject{kind: BreakerOpen, upstream: upstream}, "the open breaker was removed")
	}
}

// openOf returns the keys of the breakers of an upstream that are not closed.
func openOf(u *weir.Upstream) map[string]bool {
	keys := make(map[string]bool)
	if u == nil {
		return keys
	}
	for key, b := range u.Breakers() {
		if b.Look(0).Phase != breaker.Closed {
			keys[key] = true
		}
	}
	return keys
}

// left returns the number of open breakers of an upstream. The caller holds mu.
func (n *Notifier) left(upstream string) int {
	left := len(n.open[upstream])
	if left == 0 {
		delete(n.open, upstream)
	}
	return left
}
