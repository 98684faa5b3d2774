package dynamosqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/outcome"
)

func request(upstream string) *delivery.Request {
	return &delivery.Request{Upstream: upstream, Method: "POST", Path: "/in", Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("hello")}
}

// watch makes a store receive messages until the test ends, and returns the upstreams that it kicks.
func watch(t *testing.T, s *dynamosqs.Store) <-chan string {
	heard := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, func(upstream string) { heard <- upstream }, func(err error) { t.Log(err) })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return heard
}

// A store learns of deliveries that another one accepts, without polling.
func TestOthersAreToldOfWhatIsDue(t *testing.T) {
	o := both()
	one := open(t, o)
	two, err := dynamosqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { two.Close() })
	heard := watch(t, two)
	d, _, err := one.Accept(t.Context(), request("a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "a" {
		t.Errorf("heard of %q, want a", got)
	}
	all, err := two.Claim(t.Context(), delivery.Ask{Upstream: "a", Only: []int64{d.Seq}, Lease: time.Minute})
	if err != nil || len(all) != 1 {
		t.Fatalf("claimed %d, %v", len(all), err)
	}
}

// A message for a delivery that has ended or never existed is deleted and wakes no pump. A duplicate does no harm.
func TestMessagesOfNothingAreDropped(t *testing.T) {
	o := both()
	s := open(t, o)
	d, _, err := s.Accept(t.Context(), request("a"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: time.Minute})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if lost, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
		t.Fatal(lost, err)
	}
	for _, body := range []string{`{"Seq": 77, "Upstream": "nobody"}`, `{"Seq": 78, "Upstream": "nobody"}`} {
		if _, err := ofQueues().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &o.QueueURL, MessageBody: aws.String(body)}); err != nil {
			t.Fatal(err)
		}
	}
	heard := watch(t, s)
	for { // when this one arrives, the earlier messages have been handled
		if _, _, err := s.Accept(t.Context(), request("b")); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != "b" {
			t.Fatalf("woken for %q", got)
		}
		if empty(t, &o) {
			break
		}
	}
	if got, err := s.Get(t.Context(), d.ID); err != nil || got.Status != delivery.Completed {
		t.Errorf("it is %s, %v", got.Status, err)
	}
}

// empty reports whether all messages in a queue are in flight.
func empty(t *testing.T, o *dynamosqs.Options) bool {
	t.Helper()
	out, err := ofQueues().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &o.QueueURL, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"] == "0"
}

// Init creates missing resources, and Check finds unsuitable ones.
func TestInitMakesAndCheckFinds(t *testing.T) {
	o := both()
	s := open(t, o)
	if made, err := s.Init(t.Context()); made || err != nil {
		t.Errorf("once more: made %v, %v", made, err)
	}
	for name, redrive := range map[string]map[string]string{"fifo.fifo": {"FifoQueue": "true"}} {
		if _, err := ofQueues().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: redrive}); err != nil {
			t.Fatal(err)
		}
		wrong := o
		wrong.QueueURL = queues.Endpoint() + "/000000000000/" + name
		checks(t, wrong)
	}
	missing := o
	missing.Name = "nobody"
	checks(t, missing)
	missing = o
	missing.QueueURL += "-nobody"
	checks(t, missing)
}

func checks(t *testing.T, o dynamosqs.Options) {
	t.Helper()
	s, err := dynamosqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, is := errors.AsType[*dynamosqs.SchemaError](s.Check(t.Context())); !is {
		t.Errorf("%s, %s: %v", o.Name, o.QueueURL, s.Check(t.Context()))
	}
}

// A claim of another store is considered lost only some time after its lease, because clocks differ.
func TestAnothersLeaseIsNotCutShort(t *testing.T) {
	o := dynamosqs.Options{Table: ofTables(), Name: name()}
	one := open(t, o)
	two, err := dynamosqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := one.Accept(t.Context(), request("a")); err != nil {
		t.Fatal(err)
	}
	if all, err := one.Claim(t.Context(), delivery.Ask{Upstream: "a", Lease: 0}); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if w, err := two.Sweep(t.Context(), nil); err != nil || w.Reaped != 0 {
		t.Errorf("another store reaped %d, %v", w.Reaped, err)
	}
	if w, err := one.Sweep(t.Context(), nil); err != nil || w.Reaped != 1 {
		t.Errorf("its own store reaped %d, %v", w.Reaped, err)
	}
}

// disorder delivers every message twice, in reverse order, and delivers some again after they were deleted.
type disorder struct {
	*sqs.Client
	given []types.Message
}

func (q *disorder) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	in.WaitTimeSeconds = 1
	out, err := q.Client.ReceiveMessage(ctx, in, o...)
	if err == nil {
		slices.Reverse(out.Messages)
		fresh := out.Messages
		out.Messages = append(append(fresh, fresh...), q.given...)
		q.given = fresh
	}
	return out, err
}

// Two processes share a queue that duplicates and reorders messages. They send each delivery once, and deliveries of an
// order key in order.
func TestAQueueThatDeliversTwiceAndOutOfOrder(t *testing.T) {
	o := both()
	from := open(t, o)
	var mu sync.Mutex
	sent := make(map[string]int)
	var order []string
	const n = 40
	all := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var weirs sync.WaitGroup
	defer weirs.Wait()
	defer stop()
	for range 2 {
		with := o
		with.Queue = &disorder{Client: ofQueues()}
		s, err := dynamosqs.New(with)
		if err != nil {
			t.Fatal(err)
		}
		w := &delivery.Worker{Queue: s, Owner: "one", Poll: time.Hour, Sender: func(string) delivery.Sender {
			return sends(func(d *delivery.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				if sent[d.ID]++; d.OrderKey != "" {
					order = append(order, string(d.Body))
				}
				if len(sent) == n && sent[d.ID] == 1 {
					close(all)
				}
			})
		}}
		weirs.Go(func() { w.Run(ctx); s.Close() })
		weirs.Go(func() { s.Watch(ctx, w.Kick, func(err error) { t.Log(err) }) })
	}
	var want []string
	for i := range n {
		r := request("a")
		r.ID = delivery.NewID(time.Now())
		if i%4 == 0 {
			r.OrderKey, r.Body = "k", []byte(fmt.Sprint(i))
			want = append(want, fmt.Sprint(i))
		}
		// If the machine stalls for longer than an accept's timeout of a second, the request is repeated.
		for try := 0; ; try++ {
			begin := time.Now()
			_, _, err := from.Accept(t.Context(), r)
			if err == nil {
				break
			}
			if try == 10 || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) < 900*time.Millisecond {
				t.Fatal(err)
			}
			t.Log(err)
		}
	}
	<-all
	mu.Lock()
	defer mu.Unlock()
	for id, times := range sent {
		if times != 1 {
			t.Errorf("%s was sent %d times", id, times)
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("those of an order key went as %v", order)
	}
}

// sends is a Sender whose attempts all succeed.
type sends func(*delivery.Delivery)

func (s sends) Send(_ context.Context, d *delivery.Delivery, launch func(context.CancelCauseFunc) error) delivery.Answer {
	if err := launch(func(error) {}); err != nil {
		return delivery.Answer{Err: err, Outcome: outcome.Outcome{Class: outcome.Failed}}
	}
	s(d)
	return delivery.Answer{Status: 200, Outcome: outcome.Outcome{Class: outcome.OK}}
}
