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

// A Change is a recommendation to an operator who wants another result. It is a value and may be shared.
type Change struct {
	Field string `json:"field,omitempty"` // field of the upstream, "limits.put.rate"; "" if no field of the configuration is concerned
	At    string `json:"at,omitempty"`    // its position in the configuration
	Say   string `json:"say"`
}

// reasonOf describes why a call was refused. The caller's key is redacted.
func reasonOf(r *weir.Refusal) string {
	e := *r
	e.Key = observe.Redact(r.Key, longestKey)
	return e.Error()
}

// An advice collects changes for an upstream.
type advice struct {
	upstream string
	where    func(upstream, field string) string
	message  bool // the call is a message of a connection
	all      []Change
}

func (a *advice) say(field, format string, args ...any) {
	c := Change{Field: field, Say: fmt.Sprintf(format, args...)}
	if field != "" {
		c.At = a.where(a.upstream, field)
	}
	a.all = append(a.all, c)
}

// changes returns what could be changed so that a call, or a message of a connection, is not refused.
func changes(upstream string, r *weir.Refusal, message bool, where func(upstream, field string) string) []Change {
	a := &advice{upstream: upstream, where: where, message: message}
	switch {
	case r.Limit != "" && tooDear(r):
		a.dear(r)
	case r.Want.Lack != limit.LacksNothing:
		a.store(r)
	case r.ByHand:
		a.say("", "an operator paused these calls: weir status shows the pause, and weir resume ends it")
	case r.Reason == weir.RateLimited && r.Limit != "":
		a.limit(r)
	case r.Reason == weir.QuotaExhausted:
		a.quota(r)
	case r.Reason == weir.ConcurrencyLimited:
		a.say("concurrency", "at most %d calls may be in flight: raise the bound if the upstream can take more calls, or max_wait so that calls wait longer for a slot", r.Bound)
	case r.Reason == weir.CircuitOpen:
		a.say("breaker", "too many calls failed, so weir sends none for now: look for \"gave up\" in the log; the breaker closes when test calls succeed, or when an operator resets it (weir breaker reset)")
	case r.Reason == weir.Paused:
		a.say("", "the upstream asked weir to wait; weir waits for 15 minutes at most, unless a quota is used up")
		a.say("", "if this happens often, set a limit slightly below what the upstream allows")
	case r.Reason == weir.ShuttingDown:
		a.say("drain", "this weir is shutting down, and the call would have had to wait: send it to another instance")
	default:
		a.say("", "repeat the call after %v", r.RetryAfter.Round(time.Millisecond))
	}
	return a.all
}

// limit adds advice for a refusal by a limit of this process or its fleet.
func (a *advice) limit(r *weir.Refusal) {
	field := "limits." + r.Limit
	switch why := r.Levels; {
	case len(why) > 0 && r.Key != "":
		a.say(field, "the rate applies to each key separately: raise it, give this caller a larger plan, or make the caller send less")
	default:
		a.say(field, "raise the rate if the upstream allows more; a larger burst helps only if calls arrive in groups")
	}
	switch {
	case a.message:
		a.say("websocket", "this message would have waited %v; it is refused instead, because later messages of its connection would wait behind it", r.RetryAfter.Round(time.Millisecond))
	case r.Place > 0:
		a.say("max_wait", "this call would have waited %v behind %d others, which is longer than max_wait allows", r.RetryAfter.Round(time.Millisecond), r.Place-1)
	default:
		a.say("max_wait", "this call would have waited %v, which is longer than max_wait allows", r.RetryAfter.Round(time.Millisecond))
	}
}

// dear adds advice for a call that costs more than its limit can ever hold.
func (a *advice) dear(r *weir.Refusal) {
	a.say("limits."+r.Limit, "the call costs more units than the limit can hold (%d): raise the burst of the limit, or make the call smaller", r.Level.Full+r.Level.HeldBack)
}

// tooDear reports whether the call costs more than its limit can hold.
func tooDear(r *weir.Refusal) bool {
	for i := range r.Levels {
		if l := &r.Levels[i]; l.Rule.Name == r.Limit && l.Key == r.Key {
			return l.Cost > l.Level.Full+l.Level.HeldBack
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
		a.say(field, "the quota is used up until %s: raise the quota, or spread the calls over its window", at.Format(time.RFC3339))
		return
	}
	a.say(field, "the quota is used up: ask for a higher one, or spread the calls over its window")
}

// store adds advice for a refusal by a shared limit whose store could not help.
func (a *advice) store(r *weir.Refusal) {
	a.say("limits."+r.Limit, "%s", r.Want.String())
	if r.Want.Lack == limit.LacksReserved {
		a.say("store.outage", "a process was killed or is cut off: its part is free again after store.outage, or immediately if another process on its machine reports its death; stop processes with SIGTERM")
	}
	if r.Want.Away() {
		a.say("", "weir status shows the state of the store; store.without decides what happens to calls while it does not answer")
	}
}

// afterFailure returns changes for a call that was made and failed.
func afterFailure(upstream string, r *weir.Record, where func(upstream, field string) string) []Change {
	a := &advice{upstream: upstream, where: where}
	for _, c := range afterwards {
		if errors.Is(r.Why, c.why) {
			a.say(c.field, "%s", c.say)
		}
	}
	return a.all
}

// afterwards has the changes for each reason without a further attempt.
var afterwards = [...]struct {
	why        error
	field, say string
}{
	{retry.ErrAttempts, "retry", "all attempts were used: allow more (attempts) if failures are brief"},
	{retry.ErrBudget, "budget", "the retry budget was empty, because many calls were repeated already: the budget keeps retries from making an outage worse"},
	{retry.ErrUnsafe, "operations", "the upstream may have done the work, and a repeat might do it twice: send an Idempotency-Key, or set safe: yes for the operation"},
	{retry.ErrNotRetryable, "classify", "this status is not repeated: if the upstream uses it for a temporary failure, add it to classify"},
	{retry.ErrAdvice, "", "the upstream asked not to repeat the call"},
	{retry.ErrQuota, "", "the upstream reports that its quota is used up until it resets"},
	{retry.ErrHint, "retry", "the upstream asked for a longer wait than a call may take"},
	{retry.ErrDeadline, "timeouts", "the next attempt would have started after the deadline of the call"},
	{retry.ErrProbe, "breaker", "no call had succeeded for a while, and this one tested whether the upstream had recovered"},
}
