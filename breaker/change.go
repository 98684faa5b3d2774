package breaker

import "time"

// A Change is a change of a breaker's phase. Forcing a phase that the breaker
// is already in is told too.
type Change struct {
	Key      string
	From, To Phase
	Why      Cause
	At       time.Duration
	Until    time.Duration // when the open time is over, or the probe's deadline; 0 if closed
	Gen      uint32
}

// change swaps old for next and queues the news of it.
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

// tell delivers what is queued, unless another goroutine is at it already,
// perhaps one further up this very stack: that one delivers the rest.
func (b *Breaker) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return
	}
	b.telling = true
	defer func() { b.telling = false }() // also when onChange panics
	for len(b.untold) > 0 {
		c := b.untold[0]
		b.untold = b.untold[1:]
		b.unlocked(func() { b.onChange(c) })
	}
	b.untold = nil
}

// unlocked calls out without the lock, which is held before and after, even if f panics.
func (b *Breaker) unlocked(f func()) {
	b.mu.Unlock()
	defer b.mu.Lock()
	f()
}

// A View is what there is to see of a breaker, for people and metrics.
type View struct {
	Key    string
	Phase  Phase
	Why    Cause
	Held   bool // forced
	Gen    uint32
	Since  time.Duration // when the phase began
	Until  time.Duration // when the open time is over, or the probe's deadline; 0 if closed
	Wait   time.Duration // how long Admit would tell callers to wait; 0 if it would admit
	Probe  bool          // a probe is out
	Good   int           // good probes so far
	Failed int           // failures within the window; at least so many, if more than 16
	InARow int           // failures since the last success, or more than successes: what Config.Consecutive counts
}

// Look shows b as of now. It changes nothing: a breaker whose open time is over
// is shown open, with Wait 0, until a call comes to probe.
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
