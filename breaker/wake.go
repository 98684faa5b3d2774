package breaker

import "time"

// Wake ends the open time of b, since the upstream has been heard of: the next call is
// the probe. What was opened by hand, or for as long as the upstream asked for, stays
// open, and so does a breaker whose fleet says when it is probed.
func (b *Breaker) Wake(now time.Duration) {
	for {
		old := b.load()
		if old.Phase != Open || old.Held || now >= old.Until || old.Until > later(old.Since, old.Spell) {
			return
		}
		if t := b.tie.Load(); t != nil && t.Leads(now) {
			return
		}
		next := old.State
		next.Until = now
		if b.swap(now, old, next) {
			return
		}
	}
}
