// Package line has the queues in which calls wait, for a limit or for a slot among the attempts in flight.
//
// The next call is chosen when there is something to give, never before. So a waiting call holds nothing, a call that
// leaves has nothing to return, and a later call of higher priority overtakes without effort. One of the waiting
// calls, the driver, lends its goroutine. It asks for the first call, and for the next, until one has to wait. It
// sleeps until that call can go, and passes the role on when its own turn has come. A caller that returns something
// calls Kick. If the units are in a store that many processes share, the driver fetches them for all waiting calls,
// see Store.
//
// The order is first come, first served, or start-time fair queueing by flow and priority, see order. If the Rules
// require it, the newest call of the priority whose turn it is goes first.
package line

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

var (
	// ErrLate ends a wait whose time is up, or whose turn cannot come in time.
	ErrLate = errors.New("the turn did not come before the deadline")
	// ErrFull refuses a wait because too many calls wait already.
	ErrFull = errors.New("too many calls are waiting")
	// ErrRefused ends a wait because what it waits for has ended.
	ErrRefused = errors.New("refused")
)

// Most is how many calls can wait in a queue with its own rules.
const Most = 10_000

// A Kind is the kind of a Step.
type Kind uint8

const (
	Go     Kind = iota // it has what it asked for
	Wait               // it has to wait until For is over or Kick is called
	Refuse             // it must not wait here
	Move               // it has to wait at Spot
	Away               // it gets what it asks for elsewhere, with at most Room calls at a time; it must come Back
	Store              // the units are in a store: Fetch gets them for all waiting calls
)

// A Step is the response to a call that asks.
type Step struct {
	Kind  Kind
	For   time.Duration // for Wait and Move: it cannot go before
	Again time.Duration // for Wait: ask again after this time, because more may come than is known; 0 means after For
	Spot  Spot          // for Move
	Room  int           // for Away

	// Fetch, for Store, is called by the driver without a lock held. driver is the driver's call, and ctx is its
	// context, at whose end Fetch must return soon. Fetch gets what it can for the waiting calls, see Line.Each, and
	// returns the instant at which the first of them should ask again.
	Fetch func(ctx context.Context, now time.Duration, driver *Call) (again time.Duration)
}

type fetch = func(ctx context.Context, now time.Duration, driver *Call) time.Duration // as Step.Fetch

// An Asker is a waiting call. Ask is called on any goroutine, while the call's own sleeps and the queue is locked. It
// must not block and must not call the queue. since is the instant since which a call has been entitled to go. It is
// before now if the driver woke late: units that came since then may count, even beyond a burst.
type Asker interface {
	Ask(now, since time.Duration) Step
}

// Rules decide which call goes next and how long calls wait. They are called while the queue is locked.
type Rules interface {
	// Wait returns how long a new call may wait, if other calls of its priority or a higher one have waited for the
	// given time without a break. before is as in Longer.
	Wait(now, waited time.Duration, before bool) time.Duration

	// Stands reports whether the newest calls of a priority go first instead of the oldest. before is as in Longer.
	Stands(now, waited time.Duration, before bool) bool

	// Longer returns until when a call keeps waiting whose wait is over; not after now if it stops. waiting is the
	// number of waiting calls, including it. before reports whether it goes before some of them by its priority.
	Longer(now, came time.Duration, waiting int, before bool) time.Duration
}

// A Spot is a queue and what a call costs there.
type Spot struct {
	Key   any           // comparable
	Cost  time.Duration // how long the limit needs to produce the call's cost; more than an hour counts as an hour
	Units int64         // the cost in units

	// After returns the least time until the call can go if calls that cost ahead units go before it. A call whose
	// time is up before that is refused immediately. nil means unknown.
	After func(now time.Duration, ahead int64) time.Duration
}

// A Call is a waiting call. It keeps its place in its flow if it waits again, also in another queue. The caller must
// not change it while it waits.
type Call struct {
	Asker
	Flow     string
	Priority int // from 0 to Priorities-1; 0 goes before 1
	Weight   int // of the flow; 0 means 1
	Until    time.Duration

	// Recheck makes a call that waits again subject to refusal if its turn cannot come in time, like a new one.
	Recheck bool

	Came uint64 // rank in the order of arrival; 0 if it has not waited yet

	away *waiter // nil unless it is away
}

// A Place is the position of a call that did not go.
type Place struct {
	Place   int           // in the order in which calls would have gone; 1 means next; an estimate if costs differ
	Waiting int           // number of waiting calls, including this one
	Due     time.Duration // the instant at which the first goes, if known
	Units   int64         // units of all calls before it; an estimate like Place
}

// A Line is a queue of calls that wait for the same thing. It is safe for concurrent use.
//
// The limiter's lock may be taken while the queue's lock is held, never the other way round.
type Line struct {
	all   *Lines // its lock guards what follows
	key   any
	made  uint64
	rules Rules // nil for the rules of order

	order  order
	since  [Priorities]time.Duration // since when calls of the priority or a higher one have waited without a break
	recent [Priorities]time.Duration // a second after a call of a lower priority last began to wait
	driver *waiter                   // nil if no call waits
	due    time.Duration             // when the first is entitled to ask; may be in the past
	again  time.Duration             // when the driver asks again
	away   int                       // number of calls that get elsewhere what they ask for
	fetch  fetch                     // what the driver has to call next; nil if nothing

	waker atomic.Pointer[clock.Waker] // of the driver

	soonest time.Duration // no call's time is up before
	kept    []kept        // reserved for calls that moved to other queues
	asked   []*waiter     // of Each, for reuse
}

// New returns a separate queue with rules. Priorities share by weight, as for a limit. Weights of 0 are the defaults
// of Config.
func New(c clock.Clock, r Rules, weights [Priorities]int) *Line {
	l := &Line{all: NewLines(c, Config{}), rules: r}
	l.SetWeights(weights)
	return l
}

// SetWeights changes the weights by which priorities share. Waiting calls keep their places.
func (l *Line) SetWeights(weights [Priorities]int) {
	l.all.Set(Config{Weights: weights, Longest: Most, PerFlow: Most})
}

// ByPriority returns a separate queue in which each priority goes before all lower ones, and calls of a priority are
// first come, first served. At most longest calls can wait. Flows, weights and Place have no meaning in it.
func ByPriority(c clock.Clock, longest int) *Line {
	return &Line{all: NewLines(c, Config{Longest: longest, PerFlow: longest}), order: order{strict: true}}
}

// Empty reports whether no call waits. It costs one atomic load.
func (l *Line) Empty() bool { return l.all.Empty() }

// Waiting returns the number of waiting calls.
func (l *Line) Waiting() int { return int(l.all.waiting.Load()) }

// Waited returns how long calls have waited without a break; 0 if none waits.
func (l *Line) Waited(now time.Duration) time.Duration {
	if l.Empty() {
		return 0
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.waited(now, Priorities-1)
}

// waited returns how long calls of the priority or a higher one have waited without a break; 0 if none waits. Lower
// priorities do not count: they wait in any overload, and a call that goes before them must not be subject to the
// rules of a queue that never empties.
func (l *Line) waited(now time.Duration, priority int) time.Duration {
	if l.order.upTo(priority) == 0 {
		return 0
	}
	return max(0, now-l.since[priority])
}

// waitedFor is waited for a call. If calls of other flows wait, only the call's own flow counts: in turn with it, the
// others may wait without a break.
func (l *Line) waitedFor(now time.Duration, c *Call) time.Duration {
	d := l.waited(now, c.Priority)
	p := &l.order.priorities[c.Priority]
	switch f := p.flows[c.Flow]; {
	case p.n > 0 && (f == nil || f.n == 0):
		return 0
	case p.n > 0 && f.n < p.n:
		return min(d, now-f.since)
	}
	return d
}

// Kick lets the calls go for which there is enough now, after something was returned.
func (l *Line) Kick() {
	if l.Empty() {
		return
	}
	now := l.all.clock.Now()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.kick(now)
}

// Nudge makes the driver do what Kick does, a little later. It takes no lock, so Ask may call it.
func (l *Line) Nudge() {
	if w := l.waker.Load(); w != nil {
		w.Wake()
	}
}

// First calls look with the next call while the queue is locked. It does nothing if no call waits.
func (l *Line) First(look func(Asker)) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if w := l.order.first(); w != nil {
		look(w.call.Asker)
	}
}

// Each calls ask with all waiting calls by priority, and within a priority in order of arrival, while the queue is
// locked. It ends the wait of each call for which ask returns Go or Refuse.
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
