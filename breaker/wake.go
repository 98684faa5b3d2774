package breaker

import "time"

// Wake ends the open time of b, because the upstream has answered: the next call is the probe. It has no effect on a breaker that
// an operator opened, that is open because the upstream requested it, or whose fleet decides when it is probed.
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
