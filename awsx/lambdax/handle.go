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

// Why is what became of a message in a batch.
type Why string

const (
	Done    Why = "done"     // it was handled
	Before  Why = "before"   // it was handled before: nothing was done
	Dead    Why = "dead"     // it is a dead letter
	Failed  Why = "failed"   // handling it failed
	Refused Why = "refused"  // a breaker, a pause or a limit kept it from being handled
	InHand  Why = "in_hand"  // somebody else is handling it
	NoTime  Why = "no_time"  // the function's time is nearly over: it was not begun
	Behind  Why = "behind"   // it comes after one of its message group that has to come again
	Unasked Why = "no_store" // whether it was handled before could not be found out
)

// An End is what became of a message.
type End struct {
	Why Why
	Err error // of handling it, and of what had to be written down; nil for none
}

// Again reports whether the message has to come again.
func (e End) Again() bool { return e.Why != Done && e.Why != Before && e.Why != Dead }

// notBegun is why a message that had its turn was not handled. It says nothing of the upstream.
type notBegun struct{ why Why }

func (e *notBegun) Error() string { return "not handled: " + string(e.why) }

func (e *notBegun) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: string(e.why), Undone: true, Unsent: true}
}

// A turn is one message on its way.
type turn struct {
	b     *batch
	m     Message
	claim Claim
	began time.Time // when Handle was called first; zero if it was not
	err   error     // of the store, or of the letters
}

// handle handles one message and tells what became of it.
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

// begins reports whether there is time for another message, by how long others took lately. One that took very long
// must not keep all others from ever beginning: it is taken for half of the batch's time at most.
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

// about is what the policy is told of the message.
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

// classOf is what an error says of itself.
func classOf(err error) outcome.Outcome {
	if c, ok := errors.AsType[outcome.Classifier](err); ok {
		return c.Outcome()
	}
	if err == nil {
		return outcome.Outcome{Class: outcome.OK}
	}
	return outcome.Outcome{}
}

// attempt is made when every gate has let the message through: it is claimed then, so that a message that has to wait
// costs the store nothing.
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

// begin claims the message, unless it has to be left alone.
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
	case t.b.s.o.Attempts > 0 && c.Attempts > t.b.s.o.Attempts: // the letter could not be stored before
		return &given{Spent, fmt.Sprintf("%d attempts failed", t.b.s.o.Attempts)}
	}
	return nil
}

// A given error gives a message up without handling it.
type given struct {
	reason Reason
	detail string
}

func (e *given) Error() string { return e.detail }

func (e *given) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: string(e.reason), Undone: true, Unsent: true}
}

// A panicked error is a mistake of this program, of which the upstream knows nothing.
type panicked struct {
	value any
	stack []byte
}

func (e *panicked) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (e *panicked) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: "panic"}
}

// refusedBy is the refusal that kept the message from being handled, nil if there is none: one of the gates here, or
// of a call within Handle that was refused before anything was sent.
func refusedBy(err error) *weir.Refusal {
	if _, tried := errors.AsType[*retry.GaveUpError](err); tried {
		return nil
	}
	r, _ := errors.AsType[*weir.Refusal](err)
	return r
}

// ended says what became of the message, and writes it down.
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
	case t.began.IsZero(): // its turn did not come before the batch's time was over
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

// dies makes a dead letter of the message. If it cannot be stored the message comes again.
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

// record writes down how the claim ended, and asks again while there is time: what was handled and is not known to
// be may be handled again.
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

// rest waits, and is false if ctx ends first.
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

// delay puts the message off, if it is known for how long. A message that cannot be put off comes sooner.
func (t *turn) delay(d time.Duration) {
	if delays := t.b.s.o.Delays; delays != nil && d > 0 {
		if err := delays.Delay(t.b.store, &t.m, d); err != nil {
			t.err = errors.Join(t.err, fmt.Errorf("put it off: %w", err))
		}
	}
}

// ended tells what became of a message.
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
