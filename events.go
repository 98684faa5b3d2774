package weir

import (
	"maps"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// Events hears what happens to calls; a nil function is not called. The
// functions run on the goroutine of the call, so they should return soon; one
// that panics is ignored. Nothing that observes can fail a call.
//
// What happens with every call is better counted than told: Decided, Ended and Done cost each call
// what they do, Counts a few nanoseconds.
type Events struct {
	Counts    func(*Counts) // the upstream has been made, and counts its calls in these
	Throttled func(Ended)   // an attempt that the upstream refused for rate
	Rejected  func(Ended)   // an attempt that nobody repeats: see outcome.Fault

	// Refused: an attempt was not allowed. It returns the instant, of the upstream's clock, until which it need not
	// hear of others that were refused of the same operation, by the same limit, for the same reason; 0 if of all.
	// Where calls are counted (Counts, Violated) these cost no more than a count.
	Refused func(Refused) (quiet time.Duration)

	// Of single calls and attempts.
	Decided  func(Decided)  // a gate's answer to one attempt
	Acquired func(Acquired) // what an attempt that may be made took of a limit: told once for each of its limits
	Ended    func(Ended)    // an attempt and its outcome
	Retried  func(Retried)  // another attempt will be made
	HeldBack func(HeldBack) // it is not made yet, because nothing succeeds
	GaveUp   func(GaveUp)   // none will, although the call has failed
	Done     func(Done)     // a call, all its attempts taken together

	// Recorded is Done attempt by attempt. If it reports true, Detailed is told next, with the limits as they stand
	// and the refusal in full, which cost something to make. Wanted is asked before, of calls that have not waited: of
	// one attempt that went well, and of single decisions; id and note are those of the Call. Recorded is not told of those of which it reports false. nil wants all.
	Wanted   func(id string, note any, s Sketch) bool
	Recorded func(*Record) bool
	Detailed func(*Record)

	// Of the upstream as a whole; rare.
	Breaker func(BreakerEvent) // a breaker changed its phase
	Paused  func(PauseEvent)   // nobody may call for now: a hint, the fleet or a person says so
	Resumed func(PauseEvent)   // a pause was lifted before its time
	Damaged func(DamageEvent)  // the store's record of pauses holds what cannot be
	Paced   func(PaceEvent)    // a rate that learns has changed

	// Violated: the upstream throttled an attempt that its limits had allowed.
	Violated func(Violation)
}

// hears reports whether anybody hears of single attempts, or of calls that end.
func (e *Events) hears() bool {
	return e.Decided != nil || e.Acquired != nil || e.Refused != nil || e.Ended != nil || e.Throttled != nil || e.Rejected != nil ||
		e.Violated != nil || e.Recorded != nil || e.Done != nil
}

// A Subject says whose event it is.
type Subject struct {
	Upstream  string
	Operation string
	ID        string // Call.ID
	Key       string // Call.Keys as "scope=value", sorted, commas between; "" if there are none
}

// Refused is why an attempt was not allowed, as far as it costs nothing to say.
type Refused struct {
	Upstream   string
	Operation  string
	ID         string            // Call.ID
	At         time.Duration     // the instant, of the upstream's clock
	Keys       map[string]string // Call.Keys
	Reason     Reason
	Limit, Key string        // that said no; "" if it was no limit
	Want       limit.Want    // what it wanted of the store; see Refusal
	RetryAfter time.Duration // how long to wait before asking again
	Waited     time.Duration // for its turn
	ResetAt    time.Time     // of QuotaExhausted when it is there again, if that is known

	Untold int // how many of its like there were since the last of which was told
}

// Subject says whose refusal it is.
func (e *Refused) Subject() Subject {
	return Subject{Upstream: e.Upstream, Operation: e.Operation, ID: e.ID, Key: keysOf(e.Keys)}
}

// Decided is one decision about one attempt.
type Decided struct {
	Subject
	Refusal *Refusal      // nil if the attempt may be made
	Limit   string        // the limit that made it wait or said no; "" if it was none
	Waited  time.Duration // for its turn
	Late    time.Duration // of that, how much later than its turn it woke; for several turns the most
}

// Acquired is what one attempt took of one limit. What it turns out not to have used goes back later, and what it used
// beyond is owed: neither is told here.
type Acquired struct {
	Subject
	Limit string
	Units int64 // of the limit's unit
}

// Ended is the end of an attempt.
type Ended struct {
	Subject
	Attempt int // from 1
	Outcome outcome.Outcome
	Took    time.Duration // from the permit to the outcome, or to the head of the answer if a body followed
	Body    time.Duration // how long that body took
}

// Retried says that an attempt failed and another follows.
type Retried struct {
	Subject
	Attempt int // the one that failed
	Outcome outcome.Outcome
	Err     error
	After   time.Duration // the wait before the next
}

// HeldBack says that a retry was not sent when its time had come: many attempts in a row
// have failed, and others find out whether that is over. It counts as one that failed.
type HeldBack struct {
	Subject
	Attempts int           // made so far
	Held     int           // not made so far, this one included
	After    time.Duration // the wait before the next; 0 if there is none
}

// GaveUp says that a call failed for good.
type GaveUp struct {
	Subject
	Attempts int
	Outcome  outcome.Outcome // of the last attempt
	Why      error           // one of retry's Err values, or a *Refusal
	Err      error           // what the last attempt returned; nil if it was an answer
}

// Done is the end of a call.
type Done struct {
	Subject
	Attempts int
	Class    outcome.Class // of the last attempt; unknown if none was made
	Unsent   bool          // it is rejected by this side: nothing was sent
	Refused  bool          // no attempt was made, or the last one was not allowed
	Took     time.Duration
	Waited   time.Duration // of that, for turns and between attempts
}

// A BreakerEvent is a breaker's change of phase.
type BreakerEvent struct {
	Upstream string
	breaker.Change
	For time.Duration // until it may change again; 0 if it is closed
}

// A PauseEvent says that nobody may call until the pause is over. Of one that the fleet or
// a person has ordered, Subject is the upstream and, if it is that which is paused, the
// operation.
type PauseEvent struct {
	Subject
	Limit string // "" if it is a pool that is paused, an operation, or everything
	Key   string
	Pool  string
	Hint  time.Duration // what the upstream asked for; 0 if it was not asked here
	For   time.Duration // what it gets
	Code  string        // the upstream's word for the reason
	By    string        // whose word this process has it on: ByHint, ByFleet, ByHand or ByProbe
}

// Who says that there is a pause, or none any more.
const (
	ByHint  = "hint"  // the upstream, in an answer to this process
	ByFleet = "fleet" // another process
	ByHand  = "hand"  // a person, to this process
	ByProbe = "probe" // a call of another credential, which succeeded
)

// A DamageEvent says that a record of the store holds what cannot be. It is not believed.
type DamageEvent struct {
	Upstream string
	Err      error
}

// A PaceEvent is a new rate.
type PaceEvent struct {
	Subject
	Limit     string
	Key       string
	PerSecond float64
	Class     outcome.Class // throttled if the rate was cut
}

// tell calls an event function, if there is one, and survives it. Events that take work to make are
// made by the caller, after it has looked whether anybody listens.
func tell[E any](f func(E), e E) {
	if f == nil {
		return
	}
	// What observes must not fail a call, and the call may hold nothing that it would leak: events
	// are told when no lock is held.
	defer func() { _ = recover() }()
	f(e)
}

// A Violation is a throttle of an attempt that the limits had allowed: they are not those
// that the upstream counts by, or others call it too.
type Violation struct {
	Subject
	Code     string          // the upstream's word for it
	Levels   []LimitLevel    // what the limits of the call looked like just then
	InFlight int64           // attempts under way, this one apart
	Last     []time.Duration // how long ago the latest attempts began, the latest first
	Amounts  []int64         // the units that each of these took, of the limit of which it took most
}

// Tee is events told to all of several listeners.
func Tee(all ...Events) Events {
	return Events{
		Counts:    tee(all, func(e Events) func(*Counts) { return e.Counts }),
		Refused:   teeRefused(all),
		Throttled: tee(all, func(e Events) func(Ended) { return e.Throttled }),
		Rejected:  tee(all, func(e Events) func(Ended) { return e.Rejected }),

		Decided:  tee(all, func(e Events) func(Decided) { return e.Decided }),
		Acquired: tee(all, func(e Events) func(Acquired) { return e.Acquired }),
		Ended:    tee(all, func(e Events) func(Ended) { return e.Ended }),
		Retried:  tee(all, func(e Events) func(Retried) { return e.Retried }),
		HeldBack: tee(all, func(e Events) func(HeldBack) { return e.HeldBack }),
		GaveUp:   tee(all, func(e Events) func(GaveUp) { return e.GaveUp }),
		Done:     tee(all, func(e Events) func(Done) { return e.Done }),
		Wanted:   teeWanted(all),
		Recorded: teeRecorded(all),
		Detailed: teeDetailed(all),
		Breaker:  tee(all, func(e Events) func(BreakerEvent) { return e.Breaker }),
		Paused:   tee(all, func(e Events) func(PauseEvent) { return e.Paused }),
		Resumed:  tee(all, func(e Events) func(PauseEvent) { return e.Resumed }),
		Damaged:  tee(all, func(e Events) func(DamageEvent) { return e.Damaged }),
		Paced:    tee(all, func(e Events) func(PaceEvent) { return e.Paced }),

		Violated: tee(all, func(e Events) func(Violation) { return e.Violated }),
	}
}

// tee is one event function for those of several listeners. It is nil if none of them listens, so that
// nothing is made for an event that nobody hears. One that panics does not keep it from the others.
func tee[E any](all []Events, pick func(Events) func(E)) func(E) {
	var fs []func(E)
	for _, e := range all {
		if f := pick(e); f != nil {
			fs = append(fs, f)
		}
	}
	switch len(fs) {
	case 0:
		return nil
	case 1:
		return fs[0]
	}
	return func(e E) {
		for _, f := range fs {
			tell(f, e)
		}
	}
}

// teeRefused is tee of Refused: it is quiet as long as all of them are.
func teeRefused(all []Events) func(Refused) time.Duration {
	var fs []func(Refused) time.Duration
	for _, e := range all {
		if e.Refused != nil {
			fs = append(fs, e.Refused)
		}
	}
	switch len(fs) {
	case 0:
		return nil
	case 1:
		return fs[0]
	}
	return func(e Refused) time.Duration {
		quiet := Never
		for _, f := range fs {
			quiet = min(quiet, tellRefused(f, e))
		}
		return quiet
	}
}

// tellRefused is tell of Refused. A listener that panics wants to hear of all.
func tellRefused(f func(Refused) time.Duration, e Refused) (quiet time.Duration) {
	defer func() { _ = recover() }()
	return f(e)
}

// teeRecorded is tee of Recorded: it notes in the record which of the listeners, of eight at most, want to know more.
func teeRecorded(all []Events) func(*Record) bool {
	if !slices.ContainsFunc(all, func(e Events) bool { return e.Recorded != nil }) {
		return nil
	}
	return func(r *Record) bool {
		heard := uint8(0)
		for i, e := range all {
			if e.Recorded != nil && r.tell(e.Recorded) {
				heard |= 1 << i
			}
		}
		r.heard = heard
		return heard != 0
	}
}

// teeWanted wants what one of the listeners wants.
func teeWanted(all []Events) wanted {
	var fs []wanted
	for _, e := range all {
		switch {
		case e.Recorded == nil:
		case e.Wanted == nil:
			return nil
		default:
			fs = append(fs, e.Wanted)
		}
	}
	switch len(fs) {
	case 0:
		return nil
	case 1:
		return fs[0]
	}
	return func(id string, note any, s Sketch) bool {
		return slices.ContainsFunc(fs, func(f wanted) bool { return f.asked(id, note, s) })
	}
}

// teeDetailed tells those who wanted to know more.
func teeDetailed(all []Events) func(*Record) {
	if !slices.ContainsFunc(all, func(e Events) bool { return e.Detailed != nil }) {
		return nil
	}
	return func(r *Record) {
		for i, e := range all {
			if r.heard&(1<<i) != 0 {
				tell(e.Detailed, r)
			}
		}
	}
}

// subject says whose an event is. It is made only where somebody listens.
func subject(u *Upstream, p *plan, id string, keys map[string]string) Subject {
	return Subject{Upstream: u.name, Operation: p.name, ID: id, Key: keysOf(keys)}
}

// keysOf is a call's keys as Subject has them.
func keysOf(keys map[string]string) (all string) {
	for _, scope := range slices.Sorted(maps.Keys(keys)) {
		if all != "" {
			all += ","
		}
		all += scope + "=" + boundedKey(keys[scope])
	}
	return all
}
