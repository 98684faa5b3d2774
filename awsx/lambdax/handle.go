package lambdax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Why is the result of a message in a batch.
type Why string

const (
	Done    Why = "done"     // it was handled
	Before  Why = "before"   // it was handled earlier: nothing was done
	Dead    Why = "dead"     // it became a dead letter
	Failed  Why = "failed"   // handling it failed
	Refused Why = "refused"  // a breaker, a pause or a limit prevented its handling
	InHand  Why = "in_hand"  // another function is handling it
	NoTime  Why = "no_time"  // the remaining time was too short to begin
	Behind  Why = "behind"   // a message before it in its message group must be received again
	Unasked Why = "no_store" // the store could not be read: the message may have been handled before
)

// An End is the result of a message.
type End struct {
	Why Why
	Err error // of the handling and of recording the result; nil for none
}

// Again reports whether the message must be received again.
func (e End) Again() bool { return e.Why != Done && e.Why != Before && e.Why != Dead }

// notBegun is the reason why a message was not handled after all gates had admitted it. It implies nothing about the upstream.
type notBegun struct{ why Why }

func (e *notBegun) Error() string { return "not handled: " + string(e.why) }

func (e *notBegun) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: string(e.why), Undone: true, Unsent: true}
}

// A turn is the processing of one message.
type turn struct {
	b     *batch
	m     Message
	claim Claim
	began time.Time // the first call of Handle; zero before
	err   error     // of the store or the letters
}

func (b *batch) handle(m *events.SQSMessage) End {
	t := &turn{b: b, m: Message{SQSMessage: *m}}
	e := End{Why: NoTime}
	if b.begins() {
		o, err := t.call()
		e = t.ended(o, err)
		if !t.began.IsZero() {
			b.s.took.add(time.Since(t.began))
		}
	}
	b.ended(&t.m, e)
	return e
}

// begins reports whether there is time for another message, according to the durations of recent ones. An extreme duration must
// not prevent all further messages, so it counts as at most half of the batch's time.
func (b *batch) begins() bool {
	takes := min(b.s.took.most(), b.stop.Sub(b.began)/2)
	return time.Until(b.stop) > takes && b.work.Err() == nil
}

// call handles the message under the policy, if there is one.
func (t *turn) call() (outcome.Outcome, error) {
	u := t.b.s.o.Upstream
	if u == nil {
		err := t.attempt(t.b.work)
		return classOf(err), err
	}
	r := u.Begin(t.b.work, t.about())
	defer r.End()
	for r.Next() {
		err := t.attempt(r.Context())
		r.Report(r.Classify(err), err)
	}
	return r.Trace().Outcome, r.Err()
}

// about returns the description of the message for the policy.
func (t *turn) about() weir.Call {
	c := weir.Call{}
	if f := t.b.s.o.Call; f != nil {
		c = f(&t.m.SQSMessage)
	}
	if c.ID == "" {
		c.ID = t.m.MessageId
	}
	return c
}

// classOf returns the outcome in an error.
func classOf(err error) outcome.Outcome {
	if c, ok := errors.AsType[outcome.Classifier](err); ok {
		return c.Outcome()
	}
	if err == nil {
		return outcome.Outcome{Class: outcome.OK}
	}
	return outcome.Outcome{}
}

// attempt runs when every gate has admitted the message. The message is claimed only then, so that a message that waits costs the
// store nothing.
func (t *turn) attempt(ctx context.Context) (err error) {
	if t.claim.State != Ours {
		if err := t.begin(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	if t.began.IsZero() {
		t.began = time.Now()
	}
	return t.b.s.o.Handle(ctx, &t.m)
}

// begin claims the message. It returns an error if the message must not be handled.
func (t *turn) begin(ctx context.Context) error {
	store := t.b.s.o.Records
	if store == nil {
		t.claim.State = Ours
		return nil
	}
	c, err := store.Begin(ctx, recordID(&t.m.SQSMessage), newOwner(), t.b.end.Add(skew))
	if err != nil {
		t.err = err
		return &notBegun{Unasked}
	}
	t.claim, t.m.Attempt, t.m.Unknown = c, c.Attempts, c.Stalls > 0
	switch {
	case c.State == Completed:
		return &notBegun{Before}
	case c.State == Held:
		return &notBegun{InHand}
	case t.b.s.o.Letters == nil:
		return nil
	case c.Stalls >= MaxStalls:
		return &given{Poison, fmt.Sprintf("the function ended %d times while it was handling the message", c.Stalls)}
	case t.b.s.o.Attempts > 0 && c.Attempts > t.b.s.o.Attempts: // an earlier dead letter could not be stored
		return &given{Spent, fmt.Sprintf("%d attempts failed", t.b.s.o.Attempts)}
	}
	return nil
}

// given is an error that gives a message up without handling it.
type given struct {
	reason Reason
	detail string
}

func (e *given) Error() string { return e.detail }

func (e *given) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: string(e.reason), Undone: true, Unsent: true}
}

// panicked is a bug of this program, without relation to the upstream.
type panicked struct {
	value any
	stack []byte
}

func (e *panicked) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (e *panicked) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: "panic"}
}

// refusedBy returns the refusal that prevented the handling, nil if there was none. It comes from a gate here, or from a call
// within Handle that was refused before anything was sent.
func refusedBy(err error) *weir.Refusal {
	if _, tried := errors.AsType[*retry.GaveUpError](err); tried {
		return nil
	}
	r, _ := errors.AsType[*weir.Refusal](err)
	return r
}

// ended determines the result of the message and records it.
func (t *turn) ended(o outcome.Outcome, err error) End {
	if n, ok := errors.AsType[*notBegun](err); ok {
		return End{Why: n.why, Err: t.err}
	}
	if g, ok := errors.AsType[*given](err); ok {
		return t.dies(g.reason, g.detail, err)
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		t.b.s.o.Log.Error("panic", slog.String("message", t.m.MessageId), slog.Any("value", p.value), slog.String("stack", string(p.stack)))
	}
	refusal := refusedBy(err)
	switch {
	case err == nil:
		t.record(Handled)
		return End{Why: Done, Err: t.err}
	case refusal != nil:
		t.record(GaveBack)
		t.delay(refusal.RetryAfter)
		return End{Why: Refused, Err: errors.Join(err, t.err)}
	case errors.Is(err, weir.ErrTooMuch):
		return t.dies(Rejected, observe.Error(err), err)
	case t.began.IsZero(): // its turn did not come within the batch's time
		return End{Why: NoTime, Err: err}
	case o.Class == outcome.Rejected, o.Hint.Advice == outcome.NotAgain:
		return t.dies(Rejected, "handling it again cannot help: "+observe.Error(err), err)
	case t.b.s.o.Attempts > 0 && t.claim.Attempts >= t.b.s.o.Attempts:
		return t.dies(Spent, fmt.Sprintf("%d attempts failed, the last one with %s", t.claim.Attempts, observe.Error(err)), err)
	}
	t.record(Tried)
	t.delay(o.Hint.After)
	return End{Why: Failed, Err: errors.Join(err, t.err)}
}

// dies makes the message a dead letter. If the letter cannot be stored, the message is received again.
func (t *turn) dies(why Reason, detail string, err error) End {
	letters := t.b.s.o.Letters
	if letters != nil {
		t.err = letters.Put(t.b.store, &Letter{&t.m, why, detail, t.claim.Attempts})
	}
	if letters == nil || t.err != nil {
		t.record(Tried)
		return End{Why: Failed, Err: errors.Join(err, t.err)}
	}
	t.record(Handled)
	return End{Why: Dead, Err: errors.Join(err, t.err)}
}

// record records the end of the claim, and repeats that while there is time: a handled message without a record may be handled
// again.
func (t *turn) record(how Ending) {
	store := t.b.s.o.Records
	if store == nil || t.claim.State != Ours {
		return
	}
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		ours, err := store.End(t.b.store, t.claim, how, time.Now().Add(t.b.s.o.Keep))
		if err == nil {
			if !ours {
				t.b.s.o.Log.Warn("another instance of the function has claimed the message", slog.String("message", t.m.MessageId))
			}
			return
		}
		if !rest(t.b.store, wait) {
			t.err = errors.Join(t.err, fmt.Errorf("record the result: %w", err))
			return
		}
	}
}

// rest waits, and returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// delay postpones the message if the delay is known. If it cannot be postponed, it is received earlier.
func (t *turn) delay(d time.Duration) {
	if delays := t.b.s.o.Delays; delays != nil && d > 0 {
		if err := delays.Delay(t.b.store, &t.m, d); err != nil {
			t.err = errors.Join(t.err, fmt.Errorf("postpone the message: %w", err))
		}
	}
}

// ended logs and reports the result of a message.
func (b *batch) ended(m *Message, e End) {
	o := &b.s.o
	level := slog.LevelDebug
	if e.Err != nil {
		level = slog.LevelWarn
	}
	o.Log.LogAttrs(b.store, level, "message", slog.String("message", m.MessageId), slog.String("why", string(e.Why)), slog.String("error", observe.Error(e.Err)))
	if o.Ended != nil {
		o.Ended(m, e)
	}
}
