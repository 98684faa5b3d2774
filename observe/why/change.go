package why

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/retry"
)

// A Change is what somebody may change who did not want what happened.
type Change struct {
	Field string `json:"field,omitempty"` // of the upstream: "limits.put.rate"; "" if it is nothing of the configuration
	At    string `json:"at,omitempty"`    // where the configuration has it
	Say   string `json:"say"`
}

// reasonOf says in words why a call was refused. It has no key as the caller wrote it.
func reasonOf(r *weir.Refusal) string {
	e := *r
	e.Key = observe.Redact(r.Key, longestKey)
	return e.Error()
}

// An advice makes a change for its upstream.
type advice struct {
	upstream string
	where    func(upstream, field string) string
	message  bool // of a connection
	all      []Change
}

func (a *advice) say(field, format string, args ...any) {
	c := Change{Field: field, Say: fmt.Sprintf(format, args...)}
	if field != "" {
		c.At = a.where(a.upstream, field)
	}
	a.all = append(a.all, c)
}

// changes is what could be changed so that a call like the refused one goes, or a message of a connection.
func changes(upstream string, r *weir.Refusal, message bool, where func(upstream, field string) string) []Change {
	a := &advice{upstream: upstream, where: where, message: message}
	switch {
	case r.Limit != "" && tooDear(r):
		a.dear(r)
	case r.Want.Lack != limit.LacksNothing:
		a.store(r)
	case r.ByHand:
		a.say("", "a person has paused it: see weir status, and weir pause resume when it may go on")
	case r.Reason == weir.RateLimited && r.Limit != "":
		a.limit(r)
	case r.Reason == weir.QuotaExhausted:
		a.quota(r)
	case r.Reason == weir.ConcurrencyLimited:
		a.say("concurrency", "the bound is %d in flight: raise it if the upstream can do more at once, or max_wait so that calls wait longer for a slot", r.Bound)
	case r.Reason == weir.CircuitOpen:
		a.say("breaker", "most calls failed of late, so that none is made for now: look for calls of kind failed in the log (\"gave up\"); the breaker closes by itself when a probe succeeds, or by weir status's reset")
	case r.Reason == weir.Paused:
		a.say("max_pause", "the upstream said how long to stay away; it is believed up to max_pause")
		a.say("", "if it says so often, let less through: a limit below what the upstream allows is cheaper than its refusals")
	case r.Reason == weir.ShuttingDown:
		a.say("drain", "this weir was about to end and the call would have had to wait: send it to another one")
	default:
		a.say("", "ask again after %v", r.RetryAfter.Round(time.Millisecond))
	}
	return a.all
}

// limit is for a call that a limit of this process or of its fleet refused.
func (a *advice) limit(r *weir.Refusal) {
	field := "limits." + r.Limit
	switch why := r.Levels; {
	case len(why) > 0 && r.Key != "":
		a.say(field, "each key has this rate of its own: raise it, give this caller more (plans), or have the caller send less")
	default:
		a.say(field, "raise its rate, if the upstream allows more; a burst helps only where calls come in bunches")
	}
	switch {
	case a.message:
		a.say("websocket", "messages wait for their turn as long as message_wait lets them, and those behind them on the connection wait, too; this one would have had to wait for %v", r.RetryAfter.Round(time.Millisecond))
	case r.Place > 0:
		a.say("max_wait", "it would have been the turn of this call after %v, behind %d others: calls wait as long as max_wait lets them", r.RetryAfter.Round(time.Millisecond), r.Place-1)
	default:
		a.say("max_wait", "calls wait for their turn as long as max_wait lets them, which was less than %v", r.RetryAfter.Round(time.Millisecond))
	}
}

// dear is for a call that costs more than its limit ever holds.
func (a *advice) dear(r *weir.Refusal) {
	a.say("limits."+r.Limit, "the call costs more than the limit ever holds (%d): raise its burst, or make the call smaller", r.Level.Full)
}

// tooDear reports whether the call could never be met.
func tooDear(r *weir.Refusal) bool {
	for i := range r.Levels {
		if l := &r.Levels[i]; l.Rule.Name == r.Limit && l.Key == r.Key {
			return l.Cost > l.Level.Full
		}
	}
	return false
}

func (a *advice) quota(r *weir.Refusal) {
	field := ""
	if r.Limit != "" {
		field = "limits." + r.Limit
	}
	if at := r.ResetAt(); !at.IsZero() {
		a.say(field, "the amount is used up and there again at %s: raise it, or spread calls over the time before", at.Format(time.RFC3339))
		return
	}
	a.say(field, "the amount is used up: raise it with the upstream, or spread calls over the time before")
}

// store is for a call of a shared limit whose store was no help.
func (a *advice) store(r *weir.Refusal) {
	a.say("limits."+r.Limit, "%s", r.Want.String())
	if r.Want.Lack == limit.LacksReserved {
		a.say("store.outage", "a process was killed or is cut off: its part is released after store.outage, or immediately if another process on its machine reports its death; end processes with SIGTERM")
	}
	if r.Want.Away() {
		a.say("", "see weir status for the store, and store.without for what calls may do while it is away")
	}
}

// afterFailure is for a call that was made and failed.
func afterFailure(upstream string, r *weir.Record, where func(upstream, field string) string) []Change {
	a := &advice{upstream: upstream, where: where}
	for _, c := range afterwards {
		if errors.Is(r.Why, c.why) {
			a.say(c.field, "%s", c.say)
		}
	}
	return a.all
}

// afterwards says what to change about a call for which there was no other attempt.
var afterwards = [...]struct {
	why        error
	field, say string
}{
	{retry.ErrAttempts, "retry", "all attempts are spent: more of them help where failures are short"},
	{retry.ErrBudget, "budget", "many calls were being repeated already, so this one was not: the budget keeps retries from making an outage worse"},
	{retry.ErrUnsafe, "operations", "the call may have been done, and is not known to be safe to repeat: give it an Idempotency-Key, or say safe: yes of its operation"},
	{retry.ErrNotRetryable, "classify", "by its status the answer is not worth another attempt; if it means something else here, classify says so"},
	{retry.ErrAdvice, "", "the upstream asked not to be tried again"},
	{retry.ErrQuota, "", "the upstream says that an amount is used up until it resets"},
	{retry.ErrHint, "retry", "the upstream asked for a longer wait than a call takes on"},
	{retry.ErrDeadline, "timeouts", "the next attempt would have come after the call's own deadline"},
	{retry.ErrProbe, "breaker", "nothing has succeeded of late; this call was to find out whether that is over"},
}
