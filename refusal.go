package weir

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Reason states why there is no permit.
type Reason string

const (
	RateLimited        Reason = "rate_limited"
	QuotaExhausted     Reason = "quota_exhausted"
	ConcurrencyLimited Reason = "concurrency_limited"
	CircuitOpen        Reason = "circuit_open"
	Paused             Reason = "paused"
	ShuttingDown       Reason = "shutting_down" // the call would have waited while the program shuts down; see Upstream.Drain
)

// Reasons lists every reason, for tables and metrics.
var Reasons = [...]Reason{RateLimited, QuotaExhausted, ConcurrencyLimited, CircuitOpen, Paused, ShuttingDown}

// Unavailable reports whether the refusal applies to every caller and cost: 503 over HTTP. Other refusals are 429.
func (r *Refusal) Unavailable() bool { return r.Reason.Unavailable() || r.Crowded }

// Unavailable reports whether the reason applies to every caller and cost: 503 over HTTP. Other reasons are 429.
func (r Reason) Unavailable() bool {
	return r == CircuitOpen || r == ShuttingDown
}

// A Refusal explains why an attempt was not made. It is a local decision and no evidence about the upstream. It may
// be shared by goroutines that do not change it.
type Refusal struct {
	Upstream  string
	Operation string
	Reason    Reason

	// The limit and key that refused; empty if it was no limit.
	Limit string
	Key   string
	Rule  limit.Limit // the complete limit
	Level limit.Level // its state

	// Pool is the pool that a hint of the upstream has paused, if that was the reason; see Call.
	Pool string

	// ByHand reports that an operator, and not the upstream, ordered the pause.
	ByHand bool

	// Want states what the limit lacked from the fleet's store: the store does not respond, this process has used up
	// its part, or the store does not know the usage. See fleet.Options.
	Want limit.Want

	// Levels has the state of every limit of the call, including the one that refused; empty if it was no limit.
	Levels []LimitLevel

	// InFlight is the number of attempts in flight, and Bound the maximum, if that was the reason.
	InFlight, Bound int

	// Crowded reports that the call would have had to wait, and Call.WaitingRoom was full. The Reason is
	// ConcurrencyLimited.
	Crowded bool

	// RetryAfter is how long to wait before the next try. For a queued call it is the estimated time until its turn.
	RetryAfter time.Duration

	// Place is the call's position in the queue when it gave up, or would have been: 1 is next. Waiting is the length
	// of the queue, including the call. Both are 0 if it was in no queue.
	Place, Waiting int
}

// A LimitLevel is the state of a limit that a call was charged to.
type LimitLevel struct {
	Rule  limit.Limit // its Name is the limit's
	Key   string
	Cost  int64 // of the call, in the limit's unit
	Level limit.Level
}

// ResetAt returns when the calendar window of the limit ends, or when the quota resets according to the upstream. It
// returns the zero Time if neither applies.
func (r *Refusal) ResetAt() time.Time { return r.Level.ResetAt }

// longestWait is longer than any limit or hint asks for. Only a breaker that an operator holds open, and an
// operator's pause without an end, exceed it.
const longestWait = 367 * 24 * time.Hour

// Endless reports whether the wait is unknown, because it ends only with an operator's action or when the store
// responds. RetryAfter is then longer than any limit or hint asks for.
func (r *Refusal) Endless() bool { return r.RetryAfter > longestWait }

// Error returns a text such as "s3 put: rate_limited by limit put (3000/s): retry after 1.2s". For a quota it
// contains the reset: "resets at 2026-11-21T00:00:00-08:00, retry after 3h".
func (r *Refusal) Error() string {
	var few [256]byte
	b := few[:0]
	if name := strings.TrimSpace(r.Upstream + " " + r.Operation); name != "" {
		b = append(append(b, name...), ": "...)
	}
	b = append(b, r.Reason...)
	if r.Limit != "" {
		b = append(append(b, " by limit "...), r.Limit...)
		b = append(append(append(b, " ("...), r.Rule.At(r.Level)...), ')')
	}
	switch {
	case scopes.Several(r.Rule.Scope): // its key names the scopes
		b = append(append(b, " for "...), r.Key...)
	case r.Key != "":
		b = append(append(append(b, " for "...), r.Rule.Scope...), ' ')
		b = strconv.AppendQuote(b, r.Key)
	}
	b = r.by(b)
	if r.Crowded {
		b = append(b, " because too many calls of low priority are waiting"...)
	}
	if r.Bound > 0 {
		b = numbers(b, " with ", r.InFlight, r.Bound, " in flight")
	}
	if r.Want.Lack != limit.LacksNothing {
		b = append(append(append(b, " ("...), r.Want.String()...), ')')
	}
	b = r.budget(b)
	b = r.until(append(b, ": "...))
	if r.Place > 0 {
		b = numbers(b, ", position ", r.Place, r.Waiting, " in the queue")
	}
	return string(b)
}

// numbers appends text such as " with 3 of 5 in flight".
func numbers(b []byte, before string, one, of int, after string) []byte {
	b = strconv.AppendInt(append(b, before...), int64(one), 10)
	b = strconv.AppendInt(append(b, " of "...), int64(of), 10)
	return append(b, after...)
}

// by appends who ordered a pause, and for which pool.
func (r *Refusal) by(b []byte) []byte {
	switch {
	case r.Pool != "" && !r.ByHand:
		return strconv.AppendQuote(append(b, " by the upstream for pool "...), r.Pool)
	case r.Pool != "":
		return strconv.AppendQuote(append(b, " by an operator for pool "...), r.Pool)
	case r.ByHand:
		return append(b, " by an operator"...)
	}
	return b
}

// until appends when to retry.
func (r *Refusal) until(b []byte) []byte {
	if r.Reason == QuotaExhausted && !r.Level.ResetAt.IsZero() {
		b = r.Level.ResetAt.AppendFormat(append(b, "resets at "...), time.RFC3339)
		b = append(b, ", "...)
	}
	switch {
	case r.Endless() && r.ByHand:
		return append(b, "until an operator resumes it"...)
	case r.Endless() && r.Reason == CircuitOpen:
		return append(b, "until an operator resets the breaker"...)
	case r.Endless() && r.Want.Away():
		return append(b, "until the store answers"...)
	case r.Endless():
		return append(b, "waiting does not help"...)
	}
	return append(append(b, "retry after "...), r.RetryAfter.Round(time.Millisecond).String()...)
}

// Outcome classifies an attempt that failed because weir refused another call within it. The outcome says nothing
// about the upstream of the outer call, which is not retried.
func (r *Refusal) Outcome() outcome.Outcome {
	return outcome.Outcome{
		Class: outcome.Canceled, Code: string(r.Reason), Undone: true, Unsent: true,
		Hint: outcome.Hint{Said: true, After: r.RetryAfter, Quota: r.Reason == QuotaExhausted},
	}
}

// A Refusal that comes out of a call within an attempt classifies that attempt.
var _ outcome.Classifier = (*Refusal)(nil)

// ErrTooMuch means that a call costs more than a limit holds when full: waiting cannot help.
var ErrTooMuch = errors.New("cost above the limit's capacity")
