package lambdax

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// messages returns a batch of a queue. A body of "group/text" belongs to that message group.
func messages(queue string, bodies ...string) events.SQSEvent {
	var e events.SQSEvent
	for i, body := range bodies {
		group, _, _ := strings.Cut(body, "/")
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("m%d", i), Body: body, EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:" + queue,
			Attributes: map[string]string{"MessageGroupId": group},
		})
	}
	return e
}

func recorded[T any](t *testing.T, file string) (e T) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newSQS(t *testing.T, o SQSOptions) *SQS {
	t.Helper()
	s, err := NewSQS(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// again returns the messages of a batch that must be received again.
func again(t *testing.T, s *SQS, ctx context.Context, e events.SQSEvent) []string {
	t.Helper()
	out, err := s.Batch(ctx, e)
	if err != nil {
		t.Fatalf("all of them come again: %v", err)
	}
	text, err := json.Marshal(out)
	if err != nil || !strings.HasPrefix(string(text), `{"batchItemFailures":[`) {
		t.Fatalf("the answer is %s, %v", text, err)
	}
	names := []string{}
	for _, f := range out.BatchItemFailures {
		names = append(names, f.ItemIdentifier)
	}
	return names
}

func want(t *testing.T, what string, got []string, names ...string) {
	t.Helper()
	if !slices.Equal(got, names) {
		t.Errorf("%s: got %q, want %q", what, got, names)
	}
}

// A diary records handled messages. It fails for a body with "bad", panics for one with "panic", and so on.
type diary struct {
	mu  sync.Mutex
	all []string
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, s)
}

func (d *diary) handle(_ context.Context, m *Message) error {
	d.note(m.Body)
	switch {
	case strings.Contains(m.Body, "panic"):
		panic("a mistake")
	case strings.Contains(m.Body, "never"):
		return Permanent(errors.New("no such topic"))
	case strings.Contains(m.Body, "bad"):
		return errors.New("it fails")
	}
	return nil
}

type letters struct {
	mu   sync.Mutex
	all  []Letter
	fail error
}

func (l *letters) Put(_ context.Context, letter *Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail == nil {
		l.all = append(l.all, *letter)
	}
	return l.fail
}

func TestRecordedEvents(t *testing.T) {
	var d diary
	s := newSQS(t, SQSOptions{Handle: d.handle, Parallel: 1})
	want(t, "a standard queue", again(t, s, t.Context(), recorded[events.SQSEvent](t, "sqs-event.json")))
	want(t, "handled", d.all, "Message Body")

	d = diary{}
	s = newSQS(t, SQSOptions{Parallel: 1, Handle: func(_ context.Context, m *Message) error {
		d.note(m.Body)
		if m.Body == "a2" {
			return errors.New("it fails")
		}
		return nil
	}})
	want(t, "a FIFO queue", again(t, s, t.Context(), recorded[events.SQSEvent](t, "sqs-fifo-event.json")),
		"33d6ee51-4cc7-4302-9e22-7cd8afdaadf5", "44d6ee51-4cc7-4302-9e22-7cd8afdaadf5")
	want(t, "handled", d.all, "a1", "a2", "b1")
}

func TestOnlyWhatFailedComesAgain(t *testing.T) {
	var d diary
	s := newSQS(t, SQSOptions{Handle: d.handle})
	want(t, "standard", again(t, s, t.Context(), messages("q", "good", "bad", "panic", "good")), "m1", "m2")
	want(t, "an empty batch", again(t, s, t.Context(), events.SQSEvent{}))
}

// Message groups of a queue that is not FIFO (fair queues) do not define an order.
func TestGroupsOfAStandardQueueHaveNoOrder(t *testing.T) {
	var d diary
	s := newSQS(t, SQSOptions{Handle: d.handle})
	want(t, "a group", again(t, s, t.Context(), messages("q", "a/bad", "a/good")), "m0")
}

func TestAfterAFailureItsGroupWaits(t *testing.T) {
	var d diary
	s := newSQS(t, SQSOptions{Handle: d.handle, Parallel: 1})
	want(t, "two groups", again(t, s, t.Context(), messages("q.fifo", "a/1", "b/1", "a/bad", "b/2", "a/3", "b/3")), "m2", "m4")
	want(t, "handled", d.all, "a/1", "a/bad", "b/1", "b/2", "b/3")
}

// A message that is twice in a batch is handled once. Lambda deletes both by their common ID.
func TestAMessageTwiceInABatchIsOne(t *testing.T) {
	var d diary
	s := newSQS(t, SQSOptions{Handle: d.handle, Parallel: 1})
	e := messages("q", "good", "bad")
	e.Records = append(e.Records, e.Records[0], e.Records[1])
	want(t, "twice", again(t, s, t.Context(), e), "m1")
	want(t, "handled", d.all, "good", "bad")
}

func TestWhatCannotBeHandledIsADeadLetterAtOnce(t *testing.T) {
	var d diary
	box := &letters{}
	s := newSQS(t, SQSOptions{Handle: d.handle, Letters: box, Parallel: 1})
	want(t, "a rejected one", again(t, s, t.Context(), messages("q.fifo", "a/never", "a/2")))
	if len(box.all) != 1 || box.all[0].MessageId != "m0" || box.all[0].Reason != Rejected || !strings.Contains(box.all[0].Detail, "no such topic") {
		t.Errorf("letters: %+v", box.all)
	}
	box.fail = errors.New("the queue is away")
	want(t, "a letter that cannot be stored", again(t, s, t.Context(), messages("q.fifo", "a/never", "a/2")), "m0", "m1")
}

func TestACallThatCostsTooMuchIsADeadLetter(t *testing.T) {
	u := upstream(t, weir.Policy{Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}})
	box := &letters{}
	s := newSQS(t, SQSOptions{Upstream: u, Letters: box, Handle: (&diary{}).handle, Call: func(*events.SQSMessage) weir.Call {
		return weir.Call{Cost: map[string]int64{"requests": 2}}
	}})
	want(t, "too much", again(t, s, t.Context(), messages("q", "good")))
	if len(box.all) != 1 || box.all[0].Reason != Rejected {
		t.Errorf("letters: %+v", box.all)
	}
}

func upstream(t *testing.T, p weir.Policy) *weir.Upstream {
	t.Helper()
	u, err := weir.New("up", p, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNothingBeginsThatWouldNotBeOverInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		var d diary
		s := newSQS(t, SQSOptions{Parallel: 1, Handle: func(_ context.Context, m *Message) error {
			d.note(m.Body)
			time.Sleep(4 * time.Second)
			return nil
		}})
		want(t, "three of 4s in 9s", again(t, s, ctx, messages("q", "1", "2", "3")), "m2")
		want(t, "handled", d.all, "1", "2")
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}

// A single extreme duration must not prevent all further messages.
func TestALongOneDoesNotKeepOthersFromBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSQS(t, SQSOptions{Handle: (&diary{}).handle})
		s.took.add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		want(t, "after a long one", again(t, s, ctx, messages("q", "good")))
	})
}

// The batch responds before the function ends, whatever Handle does.
func TestABatchIsAnsweredThoughOneDoesNotHeedItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		s := newSQS(t, SQSOptions{Records: &MemoryRecords{}, Handle: func(ctx context.Context, m *Message) error {
			if m.Body == "slow" {
				time.Sleep(20 * time.Second)
			}
			return nil
		}})
		e := messages("q", "good", "slow")
		want(t, "a slow one", again(t, s, ctx, e), "m1")
		if took := time.Since(began); took != 9500*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		time.Sleep(time.Minute)
	})
}

func TestWhatEndsLateWasToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		s := newSQS(t, SQSOptions{Handle: func(ctx context.Context, m *Message) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		want(t, "one that heeds its context", again(t, s, ctx, messages("q", "1")), "m0")
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}

// A batch that took longer than the queue's visibility timeout would be handled twice.
func TestABatchEndsWithItsVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		began := time.Now()
		s := newSQS(t, SQSOptions{Handle: func(ctx context.Context, m *Message) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		again(t, s, ctx, messages("q", "1"))
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("answered after %v", took)
		}
	})
}

func TestAnOpenBreakerBurnsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		box, kept := &letters{}, &MemoryRecords{}
		delays := make(delays)
		u := upstream(t, weir.Policy{Breaker: breaker.Config{Consecutive: 1, FirstOpen: time.Minute, Open: time.Minute}})
		o := SQSOptions{Upstream: u, Handle: d.handle, Records: kept, Letters: box, Attempts: 2, Delays: delays, Parallel: 1}
		s := newSQS(t, o)
		e := messages("q", "bad")
		want(t, "first", again(t, s, t.Context(), e), "m0")
		for range 10 {
			want(t, "refused", again(t, s, t.Context(), e), "m0")
		}
		if len(d.all) != 1 || len(box.all) != 0 {
			t.Fatalf("handled %d times, %d letters: the breaker is open", len(d.all), len(box.all))
		}
		if len(delays["m0"]) != 10 || delays["m0"][9] <= 0 {
			t.Errorf("put off %v", delays["m0"])
		}
		time.Sleep(2 * time.Minute)
		want(t, "the second and last", again(t, s, t.Context(), e))
		if len(box.all) != 1 || box.all[0].Reason != Spent || box.all[0].Attempts != 2 {
			t.Errorf("letters: %+v", box.all)
		}
	})
}

type delays map[string][]time.Duration

func (d delays) Delay(_ context.Context, m *Message, by time.Duration) error {
	d[m.MessageId] = append(d[m.MessageId], by)
	return nil
}

// A call within Handle that is refused before anything is sent counts as a refusal of the message.
func TestARefusalWithinBurnsNoAttempt(t *testing.T) {
	box := &letters{}
	s := newSQS(t, SQSOptions{Records: &MemoryRecords{}, Letters: box, Attempts: 1, Handle: func(context.Context, *Message) error {
		return fmt.Errorf("publish: %w", &weir.Refusal{Upstream: "ntfy", Reason: weir.Paused, RetryAfter: time.Minute})
	}})
	for range 5 {
		want(t, "refused", again(t, s, t.Context(), messages("q", "1")), "m0")
	}
	if len(box.all) != 0 {
		t.Errorf("letters: %+v", box.all)
	}
}

func TestNothingIsHandledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := newSQS(t, SQSOptions{Handle: d.handle, Records: &MemoryRecords{}, Parallel: 1})
		e := messages("q", "good", "bad")
		for range 3 {
			want(t, "a queue that delivers twice", again(t, s, t.Context(), e), "m1")
			time.Sleep(time.Minute)
		}
		want(t, "handled", d.all, "good", "bad", "bad", "bad")
		time.Sleep(15 * 24 * time.Hour)
		again(t, s, t.Context(), e)
		if n := len(d.all); n != 6 {
			t.Errorf("handled %d times; a record ends after 14 days", n)
		}
	})
}

// While one function handles a message, another leaves it alone. After the first one's time, the second takes it over and marks
// it Unknown.
func TestAMessageInHandIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &MemoryRecords{}
		e := messages("q", "1")
		id := recordID(&e.Records[0])
		if c, err := kept.Begin(t.Context(), id, "another", time.Now().Add(time.Minute)); err != nil || c.State != Ours {
			t.Fatal(c, err)
		}
		var got []Message
		s := newSQS(t, SQSOptions{Records: kept, Handle: func(_ context.Context, m *Message) error {
			got = append(got, *m)
			return nil
		}})
		want(t, "in hand", again(t, s, t.Context(), e), "m0")
		time.Sleep(time.Minute)
		want(t, "its time is over", again(t, s, t.Context(), e))
		if len(got) != 1 || !got[0].Unknown || got[0].Attempt != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWhatEndsTheFunctionIsPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, box := &MemoryRecords{}, &letters{}
		var d diary
		s := newSQS(t, SQSOptions{Records: kept, Letters: box, Handle: d.handle})
		e := messages("q", "1")
		for range MaxStalls {
			if c, _ := kept.Begin(t.Context(), recordID(&e.Records[0]), newOwner(), time.Now().Add(time.Minute)); c.State != Ours {
				t.Fatal(c)
			}
			time.Sleep(2 * time.Minute)
		}
		want(t, "poison", again(t, s, t.Context(), e))
		if len(d.all) != 0 || len(box.all) != 1 || box.all[0].Reason != Poison {
			t.Errorf("handled %q, letters %+v", d.all, box.all)
		}
	})
}

type faulty struct {
	Records
	begin, end func() error
}

func (f *faulty) Begin(ctx context.Context, id, owner string, until time.Time) (Claim, error) {
	if err := f.begin(); err != nil {
		return Claim{}, err
	}
	return f.Records.Begin(ctx, id, owner, until)
}

func (f *faulty) End(ctx context.Context, c Claim, how Ending, keep time.Time) (bool, error) {
	if err := f.end(); err != nil {
		return false, err
	}
	return f.Records.End(ctx, c, how, keep)
}

func TestWithoutRecordsNothingIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("the table is away")
		var d diary
		ok := func() error { return nil }
		f := &faulty{Records: &MemoryRecords{}, begin: func() error { return away }, end: ok}
		s := newSQS(t, SQSOptions{Records: f, Handle: d.handle, Upstream: upstream(t, weir.Policy{})})
		want(t, "nobody knows whether it was handled", again(t, s, t.Context(), messages("q", "1")), "m0")
		want(t, "handled", d.all)

		// Recording a handled message is repeated after a failure, and the message is not received again.
		tries := 0
		f.begin, f.end = ok, func() error {
			if tries++; tries < 3 {
				return away
			}
			return nil
		}
		want(t, "handled, and written down at last", again(t, s, t.Context(), messages("q", "1")))
		want(t, "twice", again(t, s, t.Context(), messages("q", "1")))
		want(t, "handled", d.all, "1")
	})
}

func TestAPanicSaysNothingOfTheUpstream(t *testing.T) {
	u := upstream(t, weir.Policy{Breaker: breaker.Config{Consecutive: 1}})
	s := newSQS(t, SQSOptions{Upstream: u, Handle: (&diary{}).handle})
	for range 3 {
		want(t, "a panic", again(t, s, t.Context(), messages("q", "panic")), "m0")
	}
	want(t, "after panics", again(t, s, t.Context(), messages("q", "good")))
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := NewSQS(SQSOptions{Attempts: 3, Parallel: -1, Margin: time.Hour})
	for _, word := range []string{"Handle:", "Attempts:", "Parallel:", "Margin 1h"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not tell of %s", err, word)
		}
	}
}

func TestPermanentErrorsUnwrap(t *testing.T) {
	cause := errors.New("cause")
	if !errors.Is(Permanent(cause), cause) || Permanent(nil) != nil {
		t.Error("it does not unwrap")
	}
	if o := classOf(fmt.Errorf("around: %w", Permanent(cause))); o.Class != outcome.Rejected {
		t.Errorf("class %v", o.Class)
	}
}

func TestMemoryRecordsAreFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { recordsAreFenced(t, &MemoryRecords{}, time.Sleep, time.Now) })
}

// recordsAreFenced checks the contract of Records.
func recordsAreFenced(t *testing.T, r Records, pass func(time.Duration), now func() time.Time) {
	const d = time.Hour
	ctx := t.Context()
	begin := func(owner string, want State, attempts, stalls int) Claim {
		t.Helper()
		c, err := r.Begin(ctx, "queue/m", owner, now().Add(d))
		if err != nil || c.State != want || c.Attempts != attempts || c.Stalls != stalls {
			t.Fatalf("%s begins: %+v, %v; want state %d, attempt %d after %d stalls", owner, c, err, want, attempts, stalls)
		}
		return c
	}
	end := func(c Claim, how Ending, want bool) {
		t.Helper()
		if ok, err := r.End(ctx, c, how, now().Add(d)); ok != want || err != nil {
			t.Fatalf("%s ends: %v, %v; want %v", c.Owner, ok, err, want)
		}
	}
	a := begin("a", Ours, 1, 0)
	begin("a", Ours, 1, 0) // repeated, as the response was lost
	begin("b", Held, 0, 0)
	pass(d)
	b := begin("b", Ours, 2, 1)
	end(a, Handled, false) // too late: b has the claim
	end(b, GaveBack, true)
	end(b, GaveBack, true) // repeated
	c := begin("c", Ours, 2, 0)
	end(c, Tried, true)
	e := begin("e", Ours, 3, 0)
	end(e, Handled, true)
	end(e, Handled, true)
	begin("f", Completed, 0, 0)
	pass(d)
	begin("g", Ours, 1, 0)
}
