// Package jobs bounds how many long-running jobs an upstream runs for an account at once:
// recoveries, exports, training runs, which an API starts at once and runs for an hour.
//
//	throttle, err := jobs.New(jobs.Options{Active: listed, Store: store, Group: "drs"})
//	id, err := throttle.Start(ctx, func(ctx context.Context) (string, error) { ... })
//
// The upstream is asked how many are active. As long as they are below the threshold
// another may start; else the upstream is polled until one has ended, or the time is up.
// Between the question and the moment in which the upstream lists a new job, starts in
// progress hold a slot in a store that all processes share, so that those who see one
// place left at the same time do not all take it.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
)

// Options say what is bounded. Active is required.
type Options struct {
	// Active asks the upstream for the ids of the jobs that are active. A list that a
	// later one contradicts may be late, but not forget: a job that was listed and is not
	// any more has ended.
	Active func(ctx context.Context) (ids []string, err error)

	Threshold int // how many may be active; 0 means 18, or Max if that is lower
	Max       int // how many the upstream allows; 0 means 20

	Poll    time.Duration // between questions while there is no place, and how long one may take; 0 means 30s
	Timeout time.Duration // longest wait for one; 0 means 600s, below 0 means none
	Hold    time.Duration // until when a started job is listed at the latest; 0 means 120s

	// Store holds the slots of starts in progress; nil means that this process is alone.
	// Group and Name say where.
	Store fleet.Store
	Group string // "" means jobs
	Name  string // "" means slots

	Clock  clock.Clock // nil means the system's
	Events Events
}

// Events are told of, one after the other, by whoever starts a job. None must block.
type Events struct {
	Waiting  func(State)         // there is no place: it is waited for
	Started  func(time.Duration) // a job was let start, after so long a wait
	TimedOut func(*CapacityError)
	Unasked  func(Unasked)
	Alone    func(error) // the store is away: only this process's own starts are known
}

// Unasked says that a job was let start although the upstream could not be asked: its throttle is there to keep the
// upstream's own refusals away, and must not be what stops a recovery.
type Unasked struct {
	Err    error
	Waited time.Duration // from when the place was asked for
}

// A State is how many jobs there are.
type State struct {
	Current    int  `json:"currentJobs"` // active, and starting
	Max        int  `json:"maxJobs"`
	Threshold  int  `json:"threshold"`
	Available  int  `json:"availableSlots"` // how many could start now: below the threshold
	Left       int  `json:"slotsLeft"`      // how many the upstream itself would take: below its most
	Throttling bool `json:"throttling"`     // a start would have to wait
	AtCapacity bool `json:"atCapacity"`     // the upstream itself would refuse
}

// Code is the code of a CapacityError over HTTP.
const Code = "JOB_CAPACITY_TIMEOUT"

// A CapacityError means that there was no place within the time.
type CapacityError struct {
	State
	Waited time.Duration
}

func (e *CapacityError) Error() string {
	return fmt.Sprintf("%s: %d jobs are active after a wait of %v, and another may start below %d of %d (%d left below the threshold, %d below the maximum): wait for one to end, or raise the threshold",
		Code, e.Current, e.Waited.Round(time.Millisecond), e.Threshold, e.Max, e.Available, e.Left)
}

// ErrUnknown is wrapped by a start that may have worked although it failed: its slot is
// held until the upstream would have listed the job.
var ErrUnknown = errors.New("whether the job was started is unknown")

// A Throttle bounds jobs. It is safe for concurrent use.
type Throttle struct {
	o     Options
	clock clock.Clock
	slots *slots
	turn  chan struct{} // held by the call that asks for a place: the others wait for it
}

// New makes a throttle.
func New(o Options) (*Throttle, error) {
	o.Max = cmp.Or(o.Max, 20)
	o.Threshold = cmp.Or(o.Threshold, min(18, o.Max))
	o.Poll, o.Timeout, o.Hold = cmp.Or(o.Poll, 30*time.Second), cmp.Or(o.Timeout, 600*time.Second), cmp.Or(o.Hold, 120*time.Second)
	o.Group, o.Name = cmp.Or(o.Group, "jobs"), cmp.Or(o.Name, "slots")
	switch {
	case o.Active == nil:
		return nil, errors.New("jobs: Active is missing: it asks the upstream for its active jobs")
	case o.Threshold < 1 || o.Threshold > o.Max:
		return nil, fmt.Errorf("jobs: threshold %d: want 1 to %d, the most that the upstream allows", o.Threshold, o.Max)
	case o.Poll < 0 || o.Hold < 0:
		return nil, fmt.Errorf("jobs: poll %v, hold %v: must not be negative", o.Poll, o.Hold)
	}
	t := &Throttle{o: o, clock: o.Clock, turn: make(chan struct{}, 1)}
	if t.clock == nil {
		t.clock = clock.System
	}
	t.slots = &slots{o: &t.o, clock: t.clock}
	return t, nil
}

// Start waits for a place and calls start, which starts a job and returns its id. The
// error is start's, a *CapacityError, or why ctx ended.
func (t *Throttle) Start(ctx context.Context, start func(context.Context) (id string, err error)) (id string, err error) {
	s, err := t.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer func() { // also if start panics
		if id == "" && !errors.Is(err, ErrUnknown) {
			s.Release(context.WithoutCancel(ctx))
		}
	}()
	if id, err = start(ctx); err != nil {
		return "", err
	}
	s.Started(context.WithoutCancel(ctx), id)
	return id, nil
}

// Acquire waits for a place and holds it. The slot must be told what became of it: Started
// or Release; else it is held until the upstream would have listed a job.
func (t *Throttle) Acquire(ctx context.Context) (*Slot, error) { return t.acquire(ctx, t.o.Timeout) }

// acquire asks at least once, and waits if the timeout is above 0.
func (t *Throttle) acquire(ctx context.Context, timeout time.Duration) (*Slot, error) {
	begin := t.clock.Now()
	timer, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		timer, cancel = t.clock.WithTimeout(ctx, timeout, errTimeout)
	}
	defer cancel()
	var last State
	s, state, err := t.ask(timer, ctx, begin)
	if err == nil {
		last = state
	}
	if s == nil && err == nil && t.o.Events.Waiting != nil {
		t.o.Events.Waiting(last)
	}
	for s == nil && (err == nil || context.Cause(timer) != nil) {
		if timeout <= 0 || context.Cause(timer) != nil || t.clock.Sleep(timer, t.pause()) != nil {
			return nil, t.late(ctx, last, t.clock.Now()-begin)
		}
		if s, state, err = t.ask(timer, timer, begin); err == nil {
			last = state
		}
	}
	if s != nil {
		s.Waited = t.clock.Now() - begin
		if t.o.Events.Started != nil {
			t.o.Events.Started(s.Waited)
		}
	}
	return s, err
}

var errTimeout = errors.New("the wait for a slot timed out")

// pause returns the time until the next question: a poll, up to a fifth less so that processes do not ask in step. It is
// never more, so that an upstream that stops answering is detected within two polls.
func (t *Throttle) pause() time.Duration {
	return t.o.Poll*4/5 + rand.N(t.o.Poll/5+1)
}

// late is why there was no place.
func (t *Throttle) late(ctx context.Context, last State, waited time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if last.Max == 0 { // others of this process asked meanwhile
		last, _ = t.Look(ctx)
	}
	e := &CapacityError{last, waited}
	if t.o.Events.TimedOut != nil {
		t.o.Events.TimedOut(e)
	}
	return e
}

// ask asks once, as long as bound lasts, for a call that began to. Callers of one process ask one after the other.
func (t *Throttle) ask(timer, bound context.Context, begin time.Duration) (*Slot, State, error) {
	came := t.clock.Now()
	select {
	case t.turn <- struct{}{}:
	case <-timer.Done():
		return nil, State{}, context.Cause(timer)
	}
	defer func() { <-t.turn }()
	if bound.Err() != nil {
		return nil, State{}, context.Cause(bound)
	}
	return t.slots.take(bound, begin, came)
}

// Look is how many jobs there are now. It waits for nothing and takes nothing.
func (t *Throttle) Look(ctx context.Context) (State, error) {
	n, _, _, err := t.slots.count(ctx, t.clock.Now())
	if err != nil {
		return State{}, fmt.Errorf("jobs: the upstream did not return its jobs: %w", err)
	}
	return t.o.state(n), nil
}

func (o *Options) state(n int) State {
	return State{
		Current: n, Max: o.Max, Threshold: o.Threshold, Available: max(0, o.Threshold-n), Left: max(0, o.Max-n),
		Throttling: n >= o.Threshold, AtCapacity: n >= o.Max,
	}
}
