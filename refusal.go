package weir

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Reason says why there is no permit.
type Reason string

const (
	RateLimited        Reason = "rate_limited"
	QuotaExhausted     Reason = "quota_exhausted"
	ConcurrencyLimited Reason = "concurrency_limited"
	CircuitOpen        Reason = "circuit_open"
	Paused             Reason = "paused"
	ShuttingDown       Reason = "shutting_down" // it would have had to wait while the program ends; see Upstream.Drain
)

// Reasons lists every reason, for tables and metrics.
var Reasons = [...]Reason{RateLimited, QuotaExhausted, ConcurrencyLimited, CircuitOpen, Paused, ShuttingDown}

// Unavailable reports whether nothing is available for now, whoever asks and however much: 503 over HTTP, where other refusals
// are 429.
func (r *Refusal) Unavailable() bool { return r.Reason.Unavailable() || r.Crowded }

// Unavailable reports whether the reason is that nothing is to be had for now, whoever asks
// and however much: 503 over HTTP, where the other reasons are 429.
func (r Reason) Unavailable() bool {
	return r == CircuitOpen || r == ShuttingDown
}

// A Refusal is why an attempt was not made. It is made here and says nothing of
// the upstream.
type Refusal struct {
	Upstream  string
	Operation string
	Reason    Reason

	// The limit and key that said no; empty if it was no limit.
	Limit string
	Key   string
	Rule  limit.Limit // the limit in full
	Level limit.Level // what it looked like

	// Pool is whom the upstream's hint holds, if it was that and no limit; see Call.
	Pool string

	// ByHand says of a pause that a person has ordered it, and not the upstream.
	ByHand bool

	// Want says that it was for the store of the fleet: it does not answer, and what this process
	// lacks that has to go on without; or it does not know what was used. See fleet.Options.
	Want limit.Want

	// Levels is what is left of every limit that the call was charged to, that one
	// included; empty if it was no limit.
	Levels []LimitLevel

	// InFlight is how many attempts were in flight, and Bound how many may be, if that
	// was the reason.
	InFlight, Bound int

	// Crowded reports that the call would have waited, and that as many calls of low priority wait as may: see
	// Call.WaitingRoom. The Reason is ConcurrencyLimited.
	Crowded bool

	// RetryAfter is how long to wait before asking again. For a call that stood in
	// line it is when its turn would have come, as far as could be known.
	RetryAfter time.Duration

	// Place is where the call stood in line when it gave up, or would have stood: 1
	// is next. Waiting is how many stood there, this one included. Both are 0 if it
	// stood in none.
	Place, Waiting int
}

// A LimitLevel is a limit that a call was charged to, and what it looked like.
type LimitLevel struct {
	Rule  limit.Limit // its Name is the limit's
	Key   string
	Cost  int64 // of the call, in the limit's unit
	Level limit.Level
}

// ResetAt is when the window of the calendar limit that said no ends, or the quota is
// there again of which the upstream said so; the zero Time if it was neither.
func (r *Refusal) ResetAt() time.Time { return r.Level.ResetAt }

// longestWait is more than any limit or hint asks for; only a breaker that is held open
// by hand does, and a pause by hand whose end nobody knows.
const longestWait = 367 * 24 * time.Hour

// Endless reports whether nobody knows how long to wait, as a person ends it, or the store of a fleet has to be there for it:
// RetryAfter is then longer than any limit or hint asks for.
func (r *Refusal) Endless() bool { return r.RetryAfter > longestWait }

// Error reads "s3 put: rate_limited by limit put (3000/s): retry after 1.2s". That of
// a quota says when it resets: "resets at 2026-11-21T00:00:00-08:00, retry after 3h".
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
	if r.Key != "" {
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
	b = r.until(append(b, ": "...))
	if r.Place > 0 {
		b = numbers(b, ", position ", r.Place, r.Waiting, " in the queue")
	}
	return string(b)
}

// numbers writes that it is one of so many.
func numbers(b []byte, before string, one, of int, after string) []byte {
	b = strconv.AppendInt(append(b, before...), int64(one), 10)
	b = strconv.AppendInt(append(b, " of "...), int64(of), 10)
	return append(b, after...)
}

// by writes who has ordered a pause, and for whom.
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

// until writes when to come back.
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

// Outcome is that of a call within which weir refused another: it says nothing of
// the upstream around it, and is not repeated there.
func (r *Refusal) Outcome() outcome.Outcome {
	return outcome.Outcome{
		Class: outcome.Canceled, Code: string(r.Reason), Undone: true, Unsent: true,
		Hint: outcome.Hint{Said: true, After: r.RetryAfter, Quota: r.Reason == QuotaExhausted},
	}
}

// A Refusal that comes out of a call within an attempt classifies that attempt.
var _ outcome.Classifier = (*Refusal)(nil)

// ErrTooMuch means that a call costs more than a limit holds even when it is
// full: waiting cannot help.
var ErrTooMuch = errors.New("cost above the burst")
