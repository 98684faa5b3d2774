// Package line is the place where calls wait: for a limit, and for a slot among those in
// flight.
//
// Who goes next is decided when there is something to give, never before. So no call
// holds a turn while it waits, one that leaves has nothing to hand back, and one that comes
// late with a higher priority overtakes without anybody yielding. One of those who wait in a
// line, the driver, lends its goroutine: it asks for whoever is first, until somebody has to
// wait, sleeps until that call could go, and hands the drive on when its own turn has come.
// Whoever gives something back calls Kick. Where what they wait for is kept elsewhere, in a store that many
// processes share, the driver fetches it for all who wait, see Store.
//
// The order is first come, first served; or start-time fair queueing by flow and priority,
// see order. Where rules demand it, the newest call of the priority whose turn it is goes first.
package line

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

var (
	// ErrLate is why a wait ends whose time is up, or whose turn cannot come before that.
	ErrLate = errors.New("the turn did not come before the deadline")
	// ErrFull is why there is none: too many wait already.
	ErrFull = errors.New("too many calls are waiting")
	// ErrRefused is why a wait ends that what is waited for has ended.
	ErrRefused = errors.New("refused")
)

// Most is how many can wait in a line with rules of its own.
const Most = 10_000

// A Kind is what happens to a call that asks.
type Kind uint8

const (
	Go     Kind = iota // it has what it asked for
	Wait               // it has to wait, until For is over or somebody kicks
	Refuse             // it need not wait here
	Move               // it has to wait at Spot
	Away               // it gets what it asks for elsewhere, as one of Room at once; it must come Back
	Store              // what it asks for is kept elsewhere: Fetch gets it for all who wait
)

// A Step is what a call is told that asks.
type Step struct {
	Kind  Kind
	For   time.Duration // of Wait and Move: it cannot go before
	Again time.Duration // of Wait: ask again so soon, as more may come than was known; 0 means after For
	Spot  Spot          // of Move
	Room  int           // of Away

	// Fetch, of Store, is called by the driver, with no lock held; driver is its call, and ctx that call's, at whose
	// end it returns soon. It gets what it can for those who wait, see Line.Each, and returns the instant at which the
	// first is to ask again.
	Fetch func(ctx context.Context, now time.Duration, driver *Call) (again time.Duration)
}

type fetch = func(ctx context.Context, now time.Duration, driver *Call) time.Duration // as Step.Fetch

// An Asker is a call that waits. It is asked on any goroutine, while its own sleeps and
// the line is locked: it must not block, and must not call the line. Somebody has been
// entitled to go since an instant, which is before now where the driver woke late: what came
// since then may count, even beyond a burst.
type Asker interface {
	Ask(now, since time.Duration) Step
}

// Rules say who goes next and how long calls wait. They are asked while the line is
// locked.
type Rules interface {
	// Wait is how long a call waits that comes when others, of its priority or a higher one, have waited
	// for so long without a break.
	Wait(waited time.Duration) time.Duration

	// Stands reports whether the newest of a priority go first, and not the oldest. before is as in Longer.
	Stands(now, waited time.Duration, before bool) bool

	// Longer is until when a call goes on waiting whose wait is over; not after now if
	// it does not. So many wait, it included; before reports whether it goes before some of them by its priority.
	Longer(now, came time.Duration, waiting int, before bool) time.Duration
}

// A Spot is a line and what a call costs there.
type Spot struct {
	Key   any           // comparable
	Cost  time.Duration // how long it takes until as much comes as the call costs; an hour counts as much as more
	Units int64         // the same in units of what is waited for

	// After is how long it takes at least until the call can go if so many units go before
	// it. One whose time is up before that need not wait to learn it. nil means that nobody knows.
	After func(now time.Duration, ahead int64) time.Duration
}

// A Call is one that waits. It keeps its place in its flow if it waits again, or elsewhere.
type Call struct {
	Asker
	Flow     string
	Priority int // from 0 to Priorities-1; 0 goes before 1
	Weight   int // of the flow; 0 means 1
	Until    time.Duration

	// Recheck has a call that waits again be refused if its turn cannot come in time, as a new one is.
	Recheck bool

	Came uint64 // in the order in which calls came; 0 if it has not waited yet

	away *waiter // nil unless it is away
}

// A Place is where a call stood that did not go.
type Place struct {
	Place   int           // in the order in which calls would have gone; 1 means next. It is an estimate if costs differ
	Waiting int           // how many waited, this one included
	Due     time.Duration // the instant at which the first goes, as far as is known
	Units   int64         // of all who would have gone before it; an estimate like Place
}

// A Line is some calls that wait for the same. It is safe for concurrent use.
//
// The line's lock may be held while that of what is asked for is taken, never the other
// way round.
type Line struct {
	all   *Lines // its lock guards what follows
	key   any
	made  uint64
	rules Rules // nil for those of the order

	order  order
	since  [Priorities]time.Duration // a call of the priority, or of a higher one, has waited since then without a break
	driver *waiter                   // nil if nobody waits
	due    time.Duration             // since when the first is entitled to ask, or when it will be
	again  time.Duration             // when the driver asks again
	away   int                       // calls that get elsewhere what they ask for
	fetch  fetch                     // what the driver has to do next; nil if nothing

	waker atomic.Pointer[clock.Waker] // of the driver

	soonest time.Duration // nobody's time is up before
	kept    []kept        // for those who went on to other lines
	asked   []*waiter     // of Each, to be used again
}

// New returns a separate line that follows rules, in which priorities share by weight, as they do for a limit. Weights of 0
// are the defaults of Config.
func New(c clock.Clock, r Rules, weights [Priorities]int) *Line {
	l := &Line{all: NewLines(c, Config{}), rules: r}
	l.SetWeights(weights)
	return l
}

// SetWeights changes by which weights priorities share. Calls that wait keep their places.
func (l *Line) SetWeights(weights [Priorities]int) {
	l.all.Set(Config{Weights: weights, Longest: Most, PerFlow: Most})
}

// ByPriority makes a line that stands alone, in which each priority goes before all that come after it, and each
// is first come, first served. So many can wait at most. Flows, weights and Place mean nothing there.
func ByPriority(c clock.Clock, longest int) *Line {
	return &Line{all: NewLines(c, Config{Longest: longest, PerFlow: longest}), order: order{strict: true}}
}

// Empty reports whether nobody waits: one atomic load.
func (l *Line) Empty() bool { return l.all.Empty() }

// Waiting is how many wait.
func (l *Line) Waiting() int { return int(l.all.waiting.Load()) }

// Waited is how long calls have waited without a break; 0 if nobody waits.
func (l *Line) Waited(now time.Duration) time.Duration {
	if l.Empty() {
		return 0
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.waited(now, Priorities-1)
}

// waited returns how long calls of the priority, or of a higher one, have waited without a break; 0 if none waits. Calls of
// a lower priority do not count: they wait in any overload, and a call that goes before them must not wait by the rules
// of a queue that never empties.
func (l *Line) waited(now time.Duration, priority int) time.Duration {
	if l.order.upTo(priority) == 0 {
		return 0
	}
	return max(0, now-l.since[priority])
}

// Kick lets those go for whom there is enough now: something was given back.
func (l *Line) Kick() {
	if l.Empty() {
		return
	}
	now := l.all.clock.Now()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.kick(now)
}

// Nudge is Kick by the driver, in its own time. It takes no lock, so that it is for Ask, too.
func (l *Line) Nudge() {
	if w := l.waker.Load(); w != nil {
		w.Wake()
	}
}

// First calls look with the call that goes next, with the line locked; it does nothing if no call waits.
func (l *Line) First(look func(Asker)) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if w := l.order.first(); w != nil {
		look(w.call.Asker)
	}
}

// Each asks ask of all who wait, one priority after the other, each in the order in which they came, with the line locked: of those to
// whom it says Go or Refuse the wait ends so.
func (l *Line) Each(ask func(Asker) Kind) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.asked = l.order.inPriorities(l.asked[:0])
	for _, w := range l.asked {
		switch ask(w.call.Asker) {
		case Go:
			l.goes(w)
			l.all.leaves(w)
			l.end(w, nil)
		case Refuse:
			l.leave(w, ErrRefused, someOf)
		}
	}
	clear(l.asked)
}
