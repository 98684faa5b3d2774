package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

func (f *flight) ended(ctx context.Context, a Answer) {
	now := time.Now()
	attempt := &Attempt{
		N: f.d.Starts, Series: f.d.Series, Began: f.began, Took: now.Sub(f.began),
		Status: a.Status, Class: a.Outcome.Class, Code: a.Outcome.Code, Answer: a.Body, Counted: true,
	}
	if attempt.Code == "" && a.Err != nil {
		attempt.Code = a.Err.Error()
	}
	e := f.verdict(ctx, now, &a)
	attempt.Counted = !e.GiveBack
	e.Attempt = attempt
	f.record(ctx, e)
}

// verdict decides what happens to the delivery after an attempt.
func (f *flight) verdict(ctx context.Context, now time.Time, a *Answer) End {
	o := &a.Outcome
	switch {
	case o.Class == outcome.OK:
		return End{To: Completed}
	case refusedHere(a):
		return End{To: Failed, Reason: Unavailable, Detail: f.name() + unavailable + "its breaker is open"}
	case errors.Is(a.Err, errRepeats):
		return End{To: Failed, Reason: Uncertain, Detail: "it may have been delivered: an attempt started and never ended"}
	case lost(a) && f.p.w.GivesUp(f.p.upstream).Unknown:
		return End{To: Failed, Reason: Uncertain, Detail: fmt.Sprintf("it may have been delivered: attempt %d ended with %s", f.d.Attempts, said(a))}
	case o.Class == outcome.Canceled && context.Cause(ctx) == errStopping:
		return End{To: Queued, Due: now, GiveBack: true}
	case o.Class == outcome.Rejected, o.Hint.Advice == outcome.NotAgain:
		return End{To: Failed, Reason: Rejected, Detail: "the upstream rejects it: " + said(a)}
	}
	if f.probed(a) {
		return f.goesAgain(a, End{To: Queued, Due: now.Add(o.Hint.After), GiveBack: true})
	}
	delay, again := f.p.w.Schedule(f.p.upstream).Delay(f.d.Attempts)
	if !again {
		return End{To: Failed, Reason: Spent, Detail: f.away(a) + fmt.Sprintf("%d attempts failed, the last one with %s", f.d.Attempts, said(a))}
	}
	return f.goesAgain(a, End{To: Queued, Due: now.Add(max(delay, o.Hint.After))})
}

// probed reports whether the attempt was a breaker's probe and found the upstream still down. Such attempts do not
// count. If they did, a delivery would be dead after as many open periods as it has attempts.
func (f *flight) probed(a *Answer) bool {
	return a.Probed && (a.Outcome.Class == outcome.Failed || a.Outcome.Class == outcome.Throttled) && !f.p.w.GivesUp(f.p.upstream).Open
}

// goesAgain returns e, which retries the delivery, unless the delivery expires before the retry.
func (f *flight) goesAgain(a *Answer, e End) End {
	if !f.d.Expires.IsZero() && !e.Due.Before(f.d.Expires) {
		return End{To: Failed, Reason: Expired, Detail: f.away(a) + fmt.Sprintf("it expires before the next attempt; attempt %d failed with %s", f.d.Attempts, said(a))}
	}
	return e
}

// away returns a prefix for the Detail which marks the upstream as unavailable. It is empty unless the attempt got
// no response or a 502, 503 or 504, which usually come from a proxy.
func (f *flight) away(a *Answer) string {
	if a.Outcome.Class != outcome.Failed || a.Status != 0 && (a.Status < http.StatusBadGateway || a.Status > http.StatusGatewayTimeout) {
		return ""
	}
	return f.name() + unavailable
}

func (f *flight) name() string { return f.p.w.nameOf(f.p.upstream) }

func (w *Worker) nameOf(upstream string) string {
	if h, ok := w.Sender(upstream).(Hoster); ok {
		return h.Host()
	}
	return upstream
}

// refusedHere reports whether an open breaker refused the attempt.
func refusedHere(a *Answer) bool {
	_, ok := errors.AsType[*weir.Refusal](a.Err)
	return ok && a.Outcome.Code == string(weir.CircuitOpen)
}

// lost reports whether an attempt may have been executed without a confirmation: it got no response, or one from a
// gateway that got none.
func lost(a *Answer) bool {
	o := &a.Outcome
	none := a.Status == 0 || a.Status == http.StatusBadGateway || a.Status == http.StatusGatewayTimeout
	return none && !o.Undone && (o.Class == outcome.Failed || o.Class == outcome.Canceled || o.Class == outcome.Unknown)
}

// said describes how an attempt ended.
func said(a *Answer) string {
	switch {
	case a.Outcome.Code != "":
		return a.Outcome.Code
	case a.Status != 0:
		return fmt.Sprint(a.Status)
	case a.Err != nil:
		return a.Err.Error()
	}
	return "no answer"
}

// recordGrace is how long a worker waits for the queue to record ends after its grace is over.
const recordGrace = 2 * time.Second

// record stores how an attempt ended. It retries as long as the worker has time, because an attempt whose end is not
// recorded is repeated.
func (f *flight) record(ctx context.Context, e End) {
	defer f.p.w.release(f.work)
	w := f.p.w
	w.outlives(f.work)
	f.p.ends(f)
	e.Claim, e.Alone = f.d.Claim(), f.d.OrderKey == ""
	store, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(w.hard, func() { // a queue that does not respond must not keep the worker from ending
		time.AfterFunc(recordGrace, cancel)
	})()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		lost, err := w.Queue.End(store, e)
		if err == nil {
			f.recorded(e, len(lost) > 0)
			return
		}
		e.Again = true
		w.failed(store, "record", f.p.upstream, err)
		if errors.Is(err, ErrClosed) || !w.rest(ctx, wait) {
			return
		}
	}
}

func (f *flight) recorded(e End, lost bool) {
	ev := &f.p.w.Events
	if !lost {
		f.over = e.To != Queued && e.Alone
		f.d.Status, f.d.Reason, f.d.Detail = e.To, e.Reason, e.Detail
		if !e.Due.IsZero() {
			f.d.Due = e.Due
		}
	}
	switch {
	case lost && ev.Lost != nil:
		ev.Lost(&f.d)
	case !lost && ev.Ended != nil && e.Attempt != nil:
		ev.Ended(&f.d, e.Attempt)
	}
	if !lost && e.To == Failed {
		f.p.w.dead(f.p.upstream, e.Reason, 1)
		f.p.w.died([]Letter{f.d.Letter()})
	}
	if !lost && e.To != Queued && f.d.Calls() {
		f.p.w.tellOf(f.d.ID)
	}
}
