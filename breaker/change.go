package breaker

import "time"

// A Change is a change of a breaker's phase. Forcing a phase in which the breaker already is counts as a change.
type Change struct {
	Key      string
	From, To Phase
	Why      Cause
	At       time.Duration
	Until    time.Duration // end of the open time, or the probe's deadline; 0 if closed
	Gen      uint32
}

// change replaces old by next and queues the notification.
func (b *Breaker) change(now time.Duration, old, next *box) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.cur.CompareAndSwap(old, next) {
		return false
	}
	if b.onChange != nil {
		b.untold = append(b.untold, Change{
			Key: b.key, From: old.Phase, To: next.Phase,
			Why: next.Why, At: now, Until: next.Until, Gen: next.Gen,
		})
	}
	return true
}

// tell delivers queued notifications, unless another goroutine, or a caller further up this stack, is already doing so and will
// deliver the rest.
func (b *Breaker) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return
	}
	b.telling = true
	defer func() { b.telling = false }() // also if onChange panics
	for len(b.untold) > 0 {
		c := b.untold[0]
		b.untold = b.untold[1:]
		b.unlocked(func() { b.onChange(c) })
	}
	b.untold = nil
}

// unlocked calls f without the lock, which is held before and after, even if f panics.
func (b *Breaker) unlocked(f func()) {
	b.mu.Unlock()
	defer b.mu.Lock()
	f()
}

// A View is the visible state of a breaker, for people and metrics.
type View struct {
	Key    string
	Phase  Phase
	Why    Cause
	Held   bool // forced
	Gen    uint32
	Since  time.Duration // when the phase began
	Until  time.Duration // end of the open time, or the probe's deadline; 0 if closed
	Wait   time.Duration // the wait that Admit would return; 0 if it would admit
	Probe  bool          // a probe is in progress
	Good   int           // successful probes so far
	Failed int           // failures within the window; a lower bound if more than 16
	InARow int           // failures since the last success, or more than successes: the value for Config.Consecutive
}

// Look returns the state of b at now. It changes nothing: a breaker whose open time is over is reported as open, with Wait 0,
// until a call probes.
func (b *Breaker) Look(now time.Duration) View {
	s := b.load()
	v := View{
		Key: b.key, Phase: s.Phase, Why: s.Why, Held: s.Held, Gen: s.Gen, Since: s.Since, Until: s.Until,
		Probe: s.Probing, Good: s.Successes, InARow: s.InARow,
		Failed: s.Recent.within(now, s.cfg.Window),
	}
	if wait, refused := s.refuses(now); refused && s.Phase != Closed {
		v.Wait = wait
	}
	return v
}
