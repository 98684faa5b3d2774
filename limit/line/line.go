// Package line is the place where calls wait: for a slot among those in flight, and one
// day for every limit.
//
// Who goes next is decided when there is something to give, never before. So no call
// holds a turn while it waits, and one that leaves has nothing to hand back. Whoever
// gives something back calls Kick, which lets those go for whom there is enough; what
// comes with time alone is asked for by one of those who wait, the driver.
package line

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

var (
	// ErrLate is why a wait ends whose time is up.
	ErrLate = errors.New("the turn did not come in time")
	// ErrFull is why there is none: too many wait already.
	ErrFull = errors.New("too many wait")
	// ErrRefused is why a wait ends that what is waited for has ended.
	ErrRefused = errors.New("refused")
)

// Most is how many can wait in a line.
const Most = 10_000

// A Kind is what happens to a call that asks.
type Kind uint8

const (
	Go     Kind = iota // it has what it asked for
	Wait               // it has to wait, until For is over or somebody kicks
	Refuse             // it need not wait
)

// A Step is what a call is told that asks.
type Step struct {
	Kind Kind
	For  time.Duration
}

// An Asker is a call that waits. It is asked on any goroutine, while its own sleeps and
// the line is locked: it must not block, and must not call the line.
type Asker interface {
	Ask(now time.Duration) Step
}

// Rules say who goes next and how long calls wait. They are asked while the line is
// locked.
type Rules interface {
	// Wait is how long a call waits that comes when others have waited for so long
	// without a break.
	Wait(waited time.Duration) time.Duration

	// Stands reports whether the newest go first, and not the oldest.
	Stands(waited time.Duration) bool

	// Longer is until when a call goes on waiting whose wait is over; not after now if
	// it does not. So many wait, it included.
	Longer(now, came time.Duration, waiting int) time.Duration
}

// A Place is where a call stood when its wait ended.
type Place struct {
	Place, Waiting int // 1 is next; 0 if it went
}

// A Line is some calls that wait for the same. It is safe for concurrent use.
//
// The line's lock may be held while that of what is asked for is taken, never the other
// way round.
type Line struct {
	clock   clock.Clock
	rules   Rules
	waiting atomic.Int64

	mu          sync.Mutex
	first, last *waiter
	since       time.Duration // somebody has waited since then without a break
	driver      *waiter       // nil if nobody waits
	due         time.Duration // when the driver asks again
	over        error         // why nobody is to wait any more; nil while calls may
}

// New makes a line.
func New(c clock.Clock, r Rules) *Line { return &Line{clock: c, rules: r} }

// Empty reports whether nobody waits: one atomic load.
func (l *Line) Empty() bool { return l.waiting.Load() == 0 }

// Waiting is how many wait.
func (l *Line) Waiting() int { return int(l.waiting.Load()) }

// Waited is how long calls have waited without a break; 0 if nobody waits.
func (l *Line) Waited(now time.Duration) time.Duration {
	if l.Empty() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited(now)
}

func (l *Line) waited(now time.Duration) time.Duration {
	if l.first == nil {
		return 0
	}
	return max(0, now-l.since)
}

// Wait has a call wait for its turn, until the instant at most. The error is nil if it
// went, ErrLate, ErrFull, ErrRefused, what Fail was given, or the cause of ctx's end.
func (l *Line) Wait(ctx context.Context, now, until time.Duration, c Asker) (Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return Place{}, l.over
	}
	if n := l.Waiting(); n >= Most {
		return Place{n + 1, n + 1}, ErrFull
	}
	w := &waiter{ask: c, came: now, last: until, wakes: clock.NewWaker(l.clock)}
	w.until = min(until, now+l.rules.Wait(l.waited(now)))
	l.push(w)
	if l.serve(now); !w.done && l.driver == nil {
		l.driver = w
	}
	for !w.done {
		if l.late(w, now) {
			l.leave(w, ErrLate)
			break
		}
		now = l.sleep(ctx, w, now)
	}
	return w.place, w.err
}

// sleep sleeps until something may have changed for the waiter, and says what time it
// is then. The lock is held before and after.
func (l *Line) sleep(ctx context.Context, w *waiter, now time.Duration) time.Duration {
	until := w.until
	if l.driver == w {
		until = min(until, l.due)
	}
	l.mu.Unlock()
	err := w.wakes.Sleep(ctx, until-now)
	now = l.clock.Now()
	l.mu.Lock()
	if err != nil && !w.done {
		l.leave(w, err)
	}
	if !w.done && l.driver == w {
		l.serve(now)
	}
	return now
}

// serve lets everyone go for whom there is enough, in turn.
func (l *Line) serve(now time.Duration) {
	for w := l.next(now); w != nil; w = l.next(now) {
		switch s := w.ask.Ask(now); s.Kind {
		case Go:
			l.end(w, nil)
		case Refuse:
			l.leave(w, ErrRefused)
		default:
			sooner := now+s.For < l.due
			if l.due = now + s.For; sooner && l.driver != nil {
				l.driver.wakes.Wake()
			}
			return
		}
	}
}

// Kick lets those go for whom there is enough now: something was given back.
func (l *Line) Kick() {
	if l.Empty() {
		return
	}
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve(now)
}

// End ends every wait, and those that would begin later.
func (l *Line) End(err error) {
	l.mu.Lock()
	l.over = err
	l.mu.Unlock()
	l.Fail(err, func(Asker) bool { return true })
}

// Fail ends the wait of all whom pick picks: their breaker has opened, say.
func (l *Line) Fail(err error, pick func(Asker) bool) {
	if l.Empty() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := l.first; w != nil; {
		next := w.next
		if pick(w.ask) {
			l.leave(w, err)
		}
		w = next
	}
}
