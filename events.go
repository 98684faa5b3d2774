package weir

import (
	"maps"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// Events has the functions that weir calls when something happens to a call. A nil function is not called. The
// functions run on the goroutine of the call, so they should return quickly. A panic in them is ignored: observers
// cannot fail a call.
//
// For what happens in every call, prefer Counts, which costs a few nanoseconds. Decided, Ended and Done cost each
// call the time of the function.
type Events struct {
	Counts    func(*Counts) // called once, when the upstream has been made; it counts its calls in these
	Throttled func(Ended)   // the upstream throttled an attempt
	Rejected  func(Ended)   // an attempt was rejected and is not repeated; see outcome.Fault

	// Refused reports that an attempt was refused. It returns the instant, of the upstream's clock, until which it
	// does not need similar refusals: of the same operation, by the same limit, for the same reason. 0 means that it
	// needs all. If calls are counted (Counts, Violated), a suppressed refusal costs no more than a count.
	Refused func(Refused) (quiet time.Duration)

	// Events of single calls and attempts.
	Decided  func(Decided)  // the decision about one attempt
	Acquired func(Acquired) // the units that an admitted attempt took from a limit; called once for each of its limits
	Ended    func(Ended)    // an attempt and its outcome
	Retried  func(Retried)  // another attempt will be made
	HeldBack func(HeldBack) // a retry is delayed again because no attempts succeed
	GaveUp   func(GaveUp)   // the call has failed and there will be no other attempt
	Done     func(Done)     // a call has ended; covers all its attempts

	// Recorded is like Done, with every attempt. If it returns true, Detailed is called next with the same record,
	// the present limits and the complete refusal, which are costly to make. Wanted is asked before Recorded for
	// calls that did not wait: single decisions, and calls of one successful attempt. id and note are fields of the
	// Call. If Wanted returns false, Recorded is not called. A nil Wanted wants all.
	Wanted   func(id string, note any, s Sketch) bool
	Recorded func(*Record) bool
	Detailed func(*Record)

	// Rare events of the upstream as a whole.
	Breaker func(BreakerEvent) // a breaker changed its phase
	Paused  func(PauseEvent)   // calls are paused by a hint, the fleet or an operator
	Resumed func(PauseEvent)   // a pause was lifted early
	Damaged func(DamageEvent)  // the store's record of pauses is invalid
	Paced   func(PaceEvent)    // an adaptive rate has changed

	// Violated: the upstream throttled an attempt that its limits had allowed.
	Violated func(Violation)
}

// hears reports whether any listener needs single attempts or the ends of calls.
func (e *Events) hears() bool {
	return e.Decided != nil || e.Acquired != nil || e.Refused != nil || e.Ended != nil || e.Throttled != nil || e.Rejected != nil ||
		e.Violated != nil || e.Recorded != nil || e.Done != nil
}

// A Subject identifies what an event is about.
type Subject struct {
	Upstream  string
	Operation string
	ID        string // Call.ID
	Key       string // Call.Keys as "scope=value", sorted, separated by commas; "" if there are none
}

// Refused reports that an attempt was not allowed. It contains only what costs nothing to collect.
type Refused struct {
	Upstream   string
	Operation  string
	ID         string            // Call.ID
	At         time.Duration     // the instant, of the upstream's clock
	Keys       map[string]string // Call.Keys
	Reason     Reason
	Limit, Key string        // the limit that refused; "" if it was no limit
	Want       limit.Want    // what the limit lacked from the store; see Refusal
	RetryAfter time.Duration // how long to wait before asking again
	Waited     time.Duration // time that the attempt waited for its turn
	ResetAt    time.Time     // for QuotaExhausted, when the quota is available again, if known

	Untold int // number of similar refusals since the last reported one
}

// Subject returns the subject of the refusal.
func (e *Refused) Subject() Subject {
	return Subject{Upstream: e.Upstream, Operation: e.Operation, ID: e.ID, Key: keysOf(e.Keys)}
}

// Decided is one decision about one attempt.
type Decided struct {
	Subject
	Refusal *Refusal      // nil if the attempt may be made
	Limit   string        // the limit that made it wait or refused it; "" if none
	Waited  time.Duration // time that it waited for its turn
	Late    time.Duration // how much later than its turn it woke, part of Waited; for several turns the largest value
}

// Acquired reports what one attempt took from one limit. Later corrections are not included: unused units that
// return, and additional usage that is charged as debt.
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
	Waited  time.Duration // for its turn
	Took    time.Duration // from the permit to the outcome, or to the headers of the response if a body followed
	Body    time.Duration // duration of that body
}

// Retried reports that an attempt failed and another follows.
type Retried struct {
	Subject
	Attempt int // the one that failed
	Outcome outcome.Outcome
	Err     error
	After   time.Duration // the wait before the next
}

// HeldBack reports that a retry was due and not sent, because many attempts in a row have failed and other calls are
// testing whether the upstream has recovered. It counts as a failed attempt.
type HeldBack struct {
	Subject
	Attempts int           // made so far
	Held     int           // retries held back so far, including this one
	After    time.Duration // the wait before the next; 0 if there is none
}

// GaveUp reports that a call has failed finally.
type GaveUp struct {
	Subject
	Attempts int
	Outcome  outcome.Outcome // of the last attempt
	Why      error           // one of retry's Err values, or a *Refusal
	Err      error           // what the last attempt returned; nil if it was a response
}

// Done is the end of a call.
type Done struct {
	Subject
	Attempts int
	Class    outcome.Class // of the last attempt; unknown if none was made
	Unsent   bool          // rejected locally: nothing was sent
	Refused  bool          // no attempt was made, or the last one was refused
	Took     time.Duration
	Waited   time.Duration // for turns and between attempts, part of Took
}

// A BreakerEvent reports that a breaker has changed its phase.
type BreakerEvent struct {
	Upstream string
	breaker.Change
	For time.Duration // until it may change again; 0 if closed
}

// A PauseEvent reports a pause. If the fleet or an operator ordered it, Subject contains only the upstream and, for a
// pause of an operation, the operation.
type PauseEvent struct {
	Subject
	Limit string // "" if the pause is for a pool, an operation or the whole upstream
	Key   string
	Pool  string
	Hint  time.Duration // what the upstream asked for; 0 if this process did not receive the hint
	For   time.Duration // the actual duration
	Code  string        // the upstream's code for the reason
	By    string        // the source: ByHint, ByFleet, ByHand or ByProbe
}

// Sources of a pause, or of its end.
const (
	ByHint  = "hint"   // the upstream, in a response to this process
	ByFleet = "fleet"  // another process
	ByHand  = "manual" // an operator, in this process
	ByProbe = "probe"  // a successful call with another credential
)

// A DamageEvent reports that a record in the store is invalid. The record is ignored.
type DamageEvent struct {
	Upstream string
	Err      error
}

// A PaceEvent reports a new rate.
type PaceEvent struct {
	Subject
	Limit     string
	Key       string
	PerSecond float64
	Class     outcome.Class // throttled if the rate was cut
}

// tell calls an event function unless it is nil, and recovers from its panic. If an event is costly to make, the
// caller first checks whether there is a listener.
func tell[E any](f func(E), e E) {
	if f == nil {
		return
	}
	// Observers must not fail a call. Events are reported while no lock is held, so a panic leaks nothing.
	defer func() { _ = recover() }()
	f(e)
}

// A Violation reports that the upstream throttled an attempt that the limits had allowed. Either the upstream
// enforces other limits, or other clients use them too.
type Violation struct {
	Subject
	Code     string          // the upstream's code
	Levels   []LimitLevel    // the limits of the call at that instant
	InFlight int64           // attempts in flight, without this one
	Last     []time.Duration // time since each of the latest attempts began, latest first
	Amounts  []int64         // units that each of these took from the limit from which it took most
}

// Tee returns Events that call the functions of all listeners.
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

// tee combines one event function of several listeners. It returns nil if no listener sets it, so that no unneeded
// event is made. A panic of one listener does not affect the others.
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

// teeRefused is tee for Refused. It suppresses refusals only while all listeners do.
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

// tellRefused is tell for Refused. For a listener that panics it returns 0: suppress nothing.
func tellRefused(f func(Refused) time.Duration, e Refused) (quiet time.Duration) {
	defer func() { _ = recover() }()
	return f(e)
}

// teeRecorded is tee for Recorded. It notes in the record which of the listeners, at most eight, want details.
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

// teeWanted wants a record if one of the listeners wants it.
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

// teeDetailed calls the listeners that want details.
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

// subject returns the subject of an event. It allocates, so it is called only if there is a listener.
func subject(u *Upstream, p *plan, id string, keys map[string]string) Subject {
	return Subject{Upstream: u.name, Operation: p.name, ID: id, Key: keysOf(keys)}
}

// keysOf returns a call's keys as a Subject has them.
func keysOf(keys map[string]string) (all string) {
	for _, scope := range slices.Sorted(maps.Keys(keys)) {
		if all != "" {
			all += ","
		}
		all += scope + "=" + boundedKey(keys[scope])
	}
	return all
}
