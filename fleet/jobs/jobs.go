// Package jobs limits how many long-running jobs an upstream runs concurrently for an account. Recoveries, exports
// and training runs are examples: an API starts them immediately and runs them for an hour.
//
//	throttle, err := jobs.New(jobs.Options{Active: listed, Store: store, Group: "drs"})
//	id, err := throttle.Start(ctx, func(ctx context.Context) (string, error) { ... })
//
// The throttle asks the upstream for its active jobs. While they are below the threshold, another job may start.
// Otherwise the throttle polls the upstream until a job has ended or the timeout has passed. The upstream lists a
// new job only after some time. Until then, the start holds a slot in a store that all processes share. So two
// processes that see one free slot cannot both take it.
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

// Options configure a Throttle. Active is required.
type Options struct {
	// Active returns the IDs of the upstream's active jobs. Its list may be late, but must not omit a job that it
	// has listed before: such a job has ended.
	Active func(ctx context.Context) (ids []string, err error)

	Threshold int // maximum number of active jobs; 0 means 18, or Max if that is lower
	Max       int // the upstream's maximum; 0 means 20

	Poll    time.Duration // between polls while no slot is free, and timeout of a poll; 0 means 30s
	Timeout time.Duration // longest wait for a slot; 0 means 600s, negative means no wait
	Hold    time.Duration // how long a started job may remain unlisted; 0 means 120s

	// Store holds the slots of starts in progress, in the record Name of Group. nil means that no other process
	// starts jobs.
	Store fleet.Store
	Group string // "" means jobs
	Name  string // "" means slots

	Clock  clock.Clock // nil means the system's
	Events Events
}

// Events are callbacks. The goroutine that starts a job calls them in order, concurrent starts possibly
// concurrently. They must not block.
type Events struct {
	Waiting  func(State)         // no slot is free, and the call waits
	Started  func(time.Duration) // a job may start after this wait
	TimedOut func(*CapacityError)
	Unasked  func(Unasked)
	Alone    func(error) // the store is unreachable: only this process's starts count
}

// Unasked reports a start that was allowed although the upstream returned no list. The throttle only avoids
// refusals of the upstream, so its failure must not stop a recovery.
type Unasked struct {
	Err    error
	Waited time.Duration // since the call
}

// A State is the number of jobs and of free slots.
type State struct {
	Current    int  `json:"currentJobs"` // active, or being started
	Max        int  `json:"maxJobs"`
	Threshold  int  `json:"threshold"`
	Available  int  `json:"availableSlots"` // how many jobs could start now, below the threshold
	Left       int  `json:"slotsLeft"`      // how many jobs the upstream would accept, below its maximum
	Throttling bool `json:"throttling"`     // a start would have to wait
	AtCapacity bool `json:"atCapacity"`     // the upstream would refuse a start
}

// Code is the code of a CapacityError over HTTP.
const Code = "JOB_CAPACITY_TIMEOUT"

// A CapacityError means that no slot became free within the timeout.
type CapacityError struct {
	State
	Waited time.Duration
}

func (e *CapacityError) Error() string {
	return fmt.Sprintf("%s: %d jobs are active after a wait of %v, and another may start only while fewer than %d of at most %d are active (%d left below the threshold, %d below the maximum): wait for a job to end, or raise the threshold",
		Code, e.Current, e.Waited.Round(time.Millisecond), e.Threshold, e.Max, e.Available, e.Left)
}

// ErrUnknown marks a failed start that may have started a job. The error of start must wrap it. The slot is then
// held until the upstream would have listed the job.
var ErrUnknown = errors.New("whether the job was started is unknown")

// A Throttle limits jobs. It is safe for concurrent use.
type Throttle struct {
	o     Options
	clock clock.Clock
	slots *slots
	turn  chan struct{} // held by the call that asks for a slot, while other calls wait
}

// New returns a Throttle. It returns an error for invalid options.
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

// Start waits for a slot and calls start, which starts a job and returns its ID. The error is start's, a
// *CapacityError, or the cause of ctx.
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

// Acquire waits for a slot and holds it. The caller must call Started or Release. Otherwise the slot is held until
// the upstream would have listed a job.
func (t *Throttle) Acquire(ctx context.Context) (*Slot, error) { return t.acquire(ctx, t.o.Timeout) }

// acquire asks at least once. It waits only if the timeout is positive.
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

// pause returns the time until the next poll: up to a fifth less than Poll, so that processes do not poll
// simultaneously. It is never more than Poll, so that an upstream that stops answering is detected within two
// polls.
func (t *Throttle) pause() time.Duration {
	return t.o.Poll*4/5 + rand.N(t.o.Poll/5+1)
}

// late returns why the call got no slot.
func (t *Throttle) late(ctx context.Context, last State, waited time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if last.Max == 0 { // other calls of this process held the turn
		last, _ = t.Look(ctx)
	}
	e := &CapacityError{last, waited}
	if t.o.Events.TimedOut != nil {
		t.o.Events.TimedOut(e)
	}
	return e
}

// ask asks once for a slot. Calls of one process ask one at a time: ask waits for its turn until timer ends, and
// then asks until bound ends. begin is when the call began.
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

// Look returns the current number of jobs. It does not wait for a slot or take one.
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
