// Package logs writes events of calls to a slog.Logger: changes of state, and one line for each throttle, refusal, retry and call
// that was given up.
//
//	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
//	s3, err := weir.New("s3", policy, weir.Options{Events: logs.Events(log)})
//
// The goroutine of the call writes the line. If the writer can block, such as a pipe without a reader, put a Queue before it so
// that calls do not block:
//
//	queue := logs.NewQueue(os.Stderr)
//	log := slog.New(slog.NewJSONHandler(queue, nil))
//	...
//	err = queue.Close(ctx) // writes the lines that still wait
//
// Successful calls are not logged, unless Attempts adds one line for each attempt. Errors, codes, keys and IDs are shortened, and
// redacted by observe.Redact. docs/reference/metrics.md lists every line.
package logs

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// Options configure how much is written. The zero Options write every line that the logger's level allows.
type Options struct {
	// EachSecond is the maximum number of similar lines a second: lines with the same message, upstream, limit, and reason or
	// class. 0 means no maximum. The next such line has the number of omitted lines as "suppressed". Changes of breakers and
	// rates are always written.
	EachSecond int
}

// Events returns the events to pass to an upstream, so that l logs its calls.
func Events(l *slog.Logger) weir.Events { return Options{}.Events(l) }

// Events is like the function Events, with these options.
func (o Options) Events(l *slog.Logger) weir.Events {
	w := &writer{log: l, begun: time.Now(), sieve: newSieve(o.EachSecond)}
	return weir.Events{
		Refused:   w.refused,
		Throttled: w.throttled,
		Rejected:  w.rejected,

		Retried:  w.retried,
		HeldBack: w.heldBack,
		GaveUp:   w.gaveUp,
		Breaker:  w.breaker,
		Paused:   w.paused,
		Resumed:  w.resumed,
		Damaged:  w.damaged,
		Paced:    w.paced,

		Violated: w.violated,
	}
}

// Messages. docs/reference/metrics.md has a row for each.
const (
	refused     = "refused"
	throttled   = "throttled"
	rejected    = "rejected"
	systemError = "system error"
	retrying    = "retrying"
	heldBack    = "retry held back"
	gaveUp      = "gave up"
	paused      = "paused"
	resumed     = "resumed"
	damaged     = "pause record damaged"
	opened      = "breaker opened"
	closed      = "breaker closed"
	probing     = "breaker half-open"
	rateCut     = "rate cut"
	rateRaised  = "rate raised"
	violation   = "violation"
	storeAway   = "fallback activated"
	storeLong   = "fallback past outage"
	storeBack   = "fallback resumed"
)

func (w *writer) refused(e weir.Refused) (quiet time.Duration) {
	if !w.log.Enabled(context.Background(), slog.LevelInfo) {
		return e.At + time.Second // the level may have changed by then
	}
	reason := observe.Reason(e.Reason)
	k := kind{refused, e.Upstream, e.Limit, reason}
	w.sieve.came(k, e.Untold)
	l, ok := w.beginAt(e.At, slog.LevelInfo, k)
	if !ok {
		return min(w.sieve.until(k), e.At+time.Second)
	}
	l.subject(e.Subject())
	l.word("reason", reason)
	l.limit(e.Limit, e.Key)
	l.want(e.Want)
	l.wait("after", e.RetryAfter)
	l.wait("waited", e.Waited)
	w.end(l)
	return min(w.sieve.until(k), e.At+time.Second)
}

func (w *writer) throttled(e weir.Ended) {
	l, ok := w.begin(slog.LevelInfo, kind{throttled, e.Upstream, e.Operation, ""})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.number("attempt", e.Attempt)
	l.text("code", e.Outcome.Code)
	l.wait("after", e.Outcome.Hint.After)
	w.end(l)
}

// rejected logs attempts that are not repeated. A system fault is logged as an error, because an operator must repair it.
func (w *writer) rejected(e weir.Ended) {
	level, message, fault := slog.LevelInfo, rejected, e.Outcome.Fault()
	if fault == outcome.System {
		level, message = slog.LevelError, systemError
	}
	l, ok := w.begin(level, kind{message, e.Upstream, e.Operation, fault.String()})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.number("attempt", e.Attempt)
	l.word("fault", fault.String())
	l.text("code", e.Outcome.Code)
	w.end(l)
}

func (w *writer) retried(e weir.Retried) {
	l, ok := w.begin(slog.LevelInfo, kind{retrying, e.Upstream, e.Operation, e.Outcome.Class.String()})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.number("attempt", e.Attempt)
	l.outcome(e.Outcome, e.Err)
	l.wait("after", e.After)
	w.end(l)
}

func (w *writer) heldBack(e weir.HeldBack) {
	l, ok := w.begin(slog.LevelInfo, kind{heldBack, e.Upstream, e.Operation, ""})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.number("attempts", e.Attempts)
	l.wait("after", e.After)
	w.end(l)
}

func (w *writer) gaveUp(e weir.GaveUp) {
	why := observe.Why(e.Why)
	l, ok := w.begin(slog.LevelWarn, kind{gaveUp, e.Upstream, e.Operation, why})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.word("reason", why)
	l.why(why, e.Why)
	l.number("attempts", e.Attempts)
	l.outcome(e.Outcome, e.Err)
	w.end(l)
}

func (w *writer) paused(e weir.PauseEvent) {
	l, ok := w.begin(slog.LevelInfo, kind{paused, e.Upstream, e.Limit, e.By})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.limit(e.Limit, e.Key)
	l.text("pool", e.Pool)
	l.text("code", e.Code)
	l.wait("hint", e.Hint)
	l.wait("after", e.For)
	l.word("by", e.By)
	w.end(l)
}

func (w *writer) resumed(e weir.PauseEvent) {
	l, ok := w.begin(slog.LevelInfo, kind{resumed, e.Upstream, e.Limit, e.By})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.limit(e.Limit, e.Key)
	l.text("pool", e.Pool)
	l.word("by", e.By)
	w.end(l)
}

func (w *writer) damaged(e weir.DamageEvent) {
	l, ok := w.begin(slog.LevelWarn, kind{damaged, e.Upstream, "", ""})
	if !ok {
		return
	}
	l.subject(weir.Subject{Upstream: e.Upstream})
	l.word("error", observe.Error(e.Err))
	w.end(l)
}

func (w *writer) breaker(e weir.BreakerEvent) {
	level, message := slog.LevelInfo, closed
	switch e.To {
	case breaker.Open:
		level, message = slog.LevelWarn, opened
	case breaker.HalfOpen:
		message = probing
	}
	l, ok := w.always(level, message)
	if !ok {
		return
	}
	l.word("upstream", e.Upstream)
	l.key(e.Key)
	l.word("from", e.From.String())
	l.word("cause", e.Why.String())
	if e.To == breaker.Open {
		l.wait("after", e.For)
	}
	w.end(l)
}

func (w *writer) paced(e weir.PaceEvent) {
	level, message := slog.LevelDebug, rateRaised
	if e.Class == outcome.Throttled {
		level, message = slog.LevelInfo, rateCut
	}
	l, ok := w.always(level, message)
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.limit(e.Limit, e.Key)
	l.attrs = append(l.attrs, slog.Float64("rate", e.PerSecond))
	w.end(l)
}
