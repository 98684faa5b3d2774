package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

var queues *servers.Server

func TestMain(m *testing.M) {
	watchdog.Start()
	os.Exit(servers.With(func(t servers.TB) int {
		queues = servers.Fauxqs(t)
		return m.Run()
	}))
}

// A post is a queue in the emulator, with the requests that were submitted from it.
type post struct {
	*testing.T
	*sqs.Client
	inbox.Inbox

	refused atomic.Int64
	came    chan struct{} // signals that a message was handled

	mu     sync.Mutex
	asked  map[string]int // number of calls by key
	bodies []string       // in the order in which they were stored
	unread []string
	answer func(body string, again int) inbox.Answer
}

var names atomic.Int64

func newPost(t *testing.T, suffix string) *post {
	t.Helper()
	p := &post{T: t, came: make(chan struct{}, 1), asked: make(map[string]int), answer: func(string, int) inbox.Answer { return inbox.Answer{Status: 202} }}
	p.Client = sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(queues.Endpoint()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	p.Inbox = inbox.Inbox{Queue: hasty{p.Client, &p.refused}, URL: fmt.Sprintf("%s/000000000000/requests-%d%s", queues.Endpoint(), names.Add(1), suffix), Hand: p.hand,
		Unread: func(_ string, err error) {
			defer p.comes()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.unread = append(p.unread, err.Error())
		},
		Failed: func(err error) { t.Log(err) }}
	if made, err := p.Init(t.Context()); err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	if made, err := p.Init(t.Context()); err != nil || made {
		t.Fatalf("made again %v, %v", made, err)
	}
	return p
}

// hasty makes refused messages visible immediately.
type hasty struct {
	*sqs.Client
	refused *atomic.Int64
}

func (h hasty) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for i := range in.Entries {
		if in.Entries[i].VisibilityTimeout == 30 {
			in.Entries[i].VisibilityTimeout = 0
			h.refused.Add(1)
		}
	}
	return h.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (p *post) hand(r *http.Request) inbox.Answer {
	body, _ := io.ReadAll(r.Body)
	defer p.comes()
	p.mu.Lock()
	defer p.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	p.asked[key]++
	a := p.answer(string(body), p.asked[key])
	if a.Status < 300 {
		p.bodies = append(p.bodies, string(body))
	}
	return a
}

func (p *post) send(body string, more ...func(*sqs.SendMessageInput)) (id string) {
	p.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &p.URL, MessageBody: &body}
	for _, m := range more {
		m(in)
	}
	out, err := p.SendMessage(p.Context(), in)
	if err != nil {
		p.Fatal(err)
	}
	return *out.MessageId
}

// comes wakes runs.
func (p *post) comes() {
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// runs runs the inbox until a condition is true, which it checks after each message.
func (p *post) runs(until func() bool) {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Inbox.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for so := false; !so; {
		select {
		case <-p.came:
		case <-ended:
			p.Fatal("the inbox has ended by itself")
		}
		p.mu.Lock()
		so = until()
		p.mu.Unlock()
	}
}

// left returns how many messages are in a queue, visible and in flight.
func (p *post) left(url string) string {
	p.Helper()
	out, err := p.GetQueueAttributes(p.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		p.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"] + "+" + out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

const letter = `{"path": "/box/x", "body": "%s"}`

// Each message is submitted under its ID and then deleted. A message that is invalid or refused does not block the
// rest: SQS moves it to the dead letter queue.
func TestMessagesAreHandedIn(t *testing.T) {
	p, denied := newPost(t, ""), 0
	p.answer = func(body string, _ int) inbox.Answer {
		if body == "refused" {
			denied++
			return inbox.Answer{Status: 404}
		}
		return inbox.Answer{Status: 202}
	}
	ids := make(map[string]bool)
	p.send("no request")
	refused := p.send(fmt.Sprintf(letter, "refused"))
	for i := range 30 {
		ids[p.send(fmt.Sprintf(letter, fmt.Sprint(i)))] = true
	}
	p.runs(func() bool { return len(p.bodies) == 30 && denied == 10 && len(p.unread) == 10 })
	if p.asked[refused] != 10 {
		t.Errorf("message %s was handed in under %v", refused, p.asked)
	}
	for p.left(p.URL) != "0+0" { // SQS moves a message only when it is received
		if _, err := p.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &p.URL}); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.left(p.URL + "-dead"); got != "2+0" {
		t.Errorf("%s dead letters, want 2", got)
	}
	for id := range ids {
		if p.asked[id] != 1 {
			t.Errorf("message %s was handed in %d times", id, p.asked[id])
		}
	}
}

// The queue delivers duplicates, out of order, and does not delete messages. Each duplicate is submitted with the same
// key.
func TestAMessageThatComesAgainIsTheSame(t *testing.T) {
	p := newPost(t, "")
	p.Queue = twice{hasty{p.Client, &p.refused}}
	id := p.send(fmt.Sprintf(letter, "a"))
	p.answer = func(_ string, again int) inbox.Answer {
		if again == 3 { // it would be stored differently by now
			return inbox.Answer{Status: 422}
		}
		return inbox.Answer{Status: 202}
	}
	p.runs(func() bool { return len(p.bodies) >= 6 })
	if len(p.asked) != 1 || p.asked[id] == 0 || len(p.unread) > 0 {
		t.Errorf("message %s was handed in under %v", id, p.asked)
	}
	if n := p.refused.Load(); n > 0 {
		t.Errorf("%d were taken for refused: what is stored is not", n)
	}
}

// twice delivers each message twice, in reverse order, and deletes none.
type twice struct{ hasty }

func (q twice) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := q.Client.ReceiveMessage(ctx, in, o...)
	if err == nil {
		slices.Reverse(out.Messages)
		out.Messages = append(out.Messages, out.Messages...)
	}
	return out, err
}

func (q twice) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	for _, e := range in.Entries {
		_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: in.QueueUrl, ReceiptHandle: e.ReceiptHandle})
		if _, seen := errors.AsType[*types.MessageNotInflight](err); err != nil && !seen { // another copy may be visible already
			return nil, err
		}
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

// The groups of a FIFO queue become order keys and keep their order, also behind a message that is refused for some
// time.
func TestGroupsKeepTheirOrder(t *testing.T) {
	p := newPost(t, ".fifo")
	orders := make(map[string]string)
	p.Hand = func(r *http.Request) inbox.Answer {
		key := r.Header.Get("Weir-Order-Key")
		a := p.hand(r)
		p.mu.Lock()
		defer p.mu.Unlock()
		if a.Status < 300 {
			orders[key] += p.bodies[len(p.bodies)-1]
		}
		return a
	}
	p.answer = func(body string, again int) inbox.Answer {
		if body == "1" && again < 3 {
			return inbox.Answer{Status: 404}
		}
		return inbox.Answer{Status: 202}
	}
	for i := range 5 {
		for _, group := range []string{"a", "b"} {
			p.send(fmt.Sprintf(letter, fmt.Sprint(i)), func(in *sqs.SendMessageInput) {
				in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(group+fmt.Sprint(i))
			})
		}
	}
	p.runs(func() bool { return len(p.bodies) >= 10 })
	if orders["a"] != "01234" || orders["b"] != "01234" {
		t.Errorf("%v, want each in order", orders)
	}
}

// A message is equivalent to a caller's request. An invalid one is reported.
func TestWhatMessagesSay(t *testing.T) {
	got := make(chan *http.Request, 1)
	one := &oneMessage{}
	b := inbox.Inbox{Queue: one, URL: "http://q/1/requests", Hand: func(r *http.Request) inbox.Answer { got <- r; return inbox.Answer{Status: 202} }, Failed: func(error) {}}
	take := func(body string) (r *http.Request, wrong string) {
		ctx, cancel := context.WithCancel(t.Context())
		one.body, one.gone = body, cancel
		b.Unread = func(_ string, err error) { wrong = err.Error() }
		b.Run(ctx)
		select {
		case r = <-got:
		default:
		}
		return r, wrong
	}
	r, wrong := take(`{"method": "PUT", "path": "/box/in%2Fbox?a=1", "host": "box.test", "headers": {"content-type": "text/plain", "Idempotency-Key": "k"}, "body_base64": "aGVsbG8="}`)
	if wrong != "" {
		t.Fatal(wrong)
	}
	body, _ := io.ReadAll(r.Body)
	if r.Method != "PUT" || r.RequestURI != "/box/in%2Fbox?a=1" || r.Host != "box.test" || string(body) != "hello" || r.ContentLength != 5 || r.Header.Get("Content-Type") != "text/plain" ||
		r.Header.Get("Idempotency-Key") != "k" || r.Header.Get("X-Correlation-Id") != "m-1" || r.Header.Get("Prefer") != "respond-async" || r.Header.Get("Weir-Order-Key") != "" {
		t.Errorf("%+v %s", r, body)
	}
	if r, wrong := take(`{"path": "/x"}`); wrong != "" || r.Method != "POST" || r.Host != "localhost" || r.Header.Get("Idempotency-Key") != "m-1" {
		t.Errorf("%+v, %s", r, wrong)
	}
	for body, want := range map[string]string{
		`hello`:                           "is not a JSON request",
		`{"path": "/x"} {}`:               "there is data after it",
		`{"path": "/x", "verb": "GET"}`:   `unknown field "verb"`,
		`{}`:                              "path",
		`{"path": "http://evil.test/x"}`:  "path",
		`{"path": "/x y"}`:                "",
		`{"path": "/x", "method": "A B"}`: "method",
		`{"path": "/x", "headers": {"A B": "x"}}`:                "header",
		`{"path": "/x", "headers": {"A": "x\r\nB: y"}}`:          "header",
		`{"path": "/x", "headers": {"a": "x", "A": "y"}}`:        "twice",
		`{"path": "/x", "headers": {"Host": "x"}}`:               "host",
		`{"path": "/x", "body": "a", "body_base64": "aGVsbG8="}`: "both",
	} {
		r, wrong := take(body)
		if want == "" { // valid here; weir reports the error like a caller's
			if r == nil || r.RequestURI != "/x y" {
				t.Errorf("%s: %v", body, wrong)
			}
			continue
		}
		if r != nil || !strings.Contains(wrong, want) {
			t.Errorf("%s: %q, want %s", body, wrong, want)
		}
	}
}

// oneMessage is a queue with one message. It reports when that is deleted or given back.
type oneMessage struct {
	inbox.Queue
	body    string
	gone    func()
	deleted int
	unseen  []int32
}

func (q *oneMessage) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if q.body == "" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m := types.Message{Body: aws.String(q.body), MessageId: aws.String("m-1"), ReceiptHandle: aws.String("r-1"), Attributes: map[string]string{"MessageGroupId": "fair"}}
	q.body = ""
	return &sqs.ReceiveMessageOutput{Messages: []types.Message{m}}, nil
}

func (q *oneMessage) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.deleted++
	q.gone()
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (q *oneMessage) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for _, e := range in.Entries {
		if q.unseen = append(q.unseen, e.VisibilityTimeout); e.VisibilityTimeout != 120 {
			q.gone()
		}
	}
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// While deliveries are unavailable, a message is held and not received again. It is given back before SQS would take it
// back, and when weir ends.
func TestAMessageIsHeldWhileItCannotBeStored(t *testing.T) {
	for name, tt := range map[string]struct {
		answers func(since time.Duration) inbox.Answer
		ends    time.Duration // when weir ends; 0 means never
		deleted int
		last    int32 // visibility timeout with which it is given back; -1 if it is not
		took    time.Duration
	}{
		"away for ten minutes": {func(since time.Duration) inbox.Answer {
			if since < 10*time.Minute {
				return inbox.Answer{Status: 503, Wait: time.Second}
			}
			return inbox.Answer{Status: 202}
		}, 0, 1, -1, 11 * time.Minute},
		"a quota of the day": {func(since time.Duration) inbox.Answer {
			if since < 3*time.Hour {
				return inbox.Answer{Status: 429, Wait: 3*time.Hour - since}
			}
			return inbox.Answer{Status: 202}
		}, 0, 1, -1, 3*time.Hour + time.Minute},
		"a quota of the month": {func(time.Duration) inbox.Answer { return inbox.Answer{Status: 429, Wait: 300 * time.Hour} }, 0, 0, 55 * 60, 12 * time.Hour},
		"a limit that is raised": {func(since time.Duration) inbox.Answer {
			if since < time.Hour {
				return inbox.Answer{Status: 429, Wait: 300 * time.Hour}
			}
			return inbox.Answer{Status: 202}
		}, 0, 1, -1, 66 * time.Minute},
		"weir ends":             {func(time.Duration) inbox.Answer { return inbox.Answer{Status: 503} }, 5 * time.Minute, 0, 0, 6 * time.Minute},
		"it will never be":      {func(time.Duration) inbox.Answer { return inbox.Answer{Status: 400} }, 0, 0, 30, time.Second},
		"away for half the day": {func(time.Duration) inbox.Answer { return inbox.Answer{Status: 503} }, 0, 0, 0, 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin := time.Now()
				q := &oneMessage{body: fmt.Sprintf(letter, "a"), gone: cancel}
				b := inbox.Inbox{Queue: q, URL: "http://q/1/requests", Hand: func(*http.Request) inbox.Answer { return tt.answers(time.Since(begin)) }, Failed: func(err error) { t.Error(err) }}
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, cancel)
				}
				b.Run(ctx)
				last := int32(-1)
				if n := len(q.unseen); n > 0 && q.unseen[n-1] != 120 {
					last = q.unseen[n-1]
				}
				held := 0
				for _, long := range q.unseen {
					if long == 120 {
						held++
					}
				}
				took := time.Since(begin)
				if q.deleted != tt.deleted || last != tt.last || took > tt.took || time.Duration(held+1)*120*time.Second < took {
					t.Errorf("deleted %d, given back for %d, held %d times in %v", q.deleted, last, held, took)
				}
			})
		})
	}
}
