package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// withKeys sets credentials for the AWS emulators.
func withKeys(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
}

// A queue is an SQS emulator with the URL of the request queue.
type queue struct {
	*sqs.Client
	endpoint, at string
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	withKeys(t)
	q := &queue{endpoint: servers.Fauxqs(t).Endpoint()}
	q.at = q.endpoint + "/000000000000/requests"
	q.Client = sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &q.endpoint, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	return q
}

// made creates the queue as weir does.
func (q *queue) made(t *testing.T) *queue {
	t.Helper()
	if _, err := (&inbox.Inbox{Queue: q, URL: q.at}).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// Requests in a queue are delivered once per message ID, as requests of the configured owner. Messages that cannot be
// stored are reported and become dead letters of the queue.
func TestRequestsFromAQueue(t *testing.T) {
	q := newQueue(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("WEIR_TEST_APP", "token-of-the-app")
	t.Setenv("WEIR_TEST_OTHER", "token-of-another")
	said := fmt.Sprintf("{file: deliveries.db, requests: {queue: '%s', owner: app}}", q.at)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, "listen: 127.0.0.1:0\ntokens: {app: {env: WEIR_TEST_APP}}\ndeliveries: "+said+"\nupstreams: {box: {url: 'http://box.test'}}\n")
	f := load(t, file)
	startsWithProblem(t, file, "there is none; run weir store init")
	for _, want := range []string{"it was created, with its dead letter queue", "nothing had to be changed"} {
		var out bytes.Buffer
		if err := Init(t.Context(), &out, f, Options{Env: os.LookupEnv}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q, %v, want %s", &out, err, want)
		}
	}
	for _, r := range Try(t.Context(), f, Options{Env: os.LookupEnv}) {
		if r.Name == "deliveries requests" && (r.Err != nil || !strings.Contains(r.Said, "its dead letter queue exists")) {
			t.Errorf("%+v", r)
		}
	}
	send := func(body string) string {
		t.Helper()
		out, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q.at, MessageBody: &body})
		if err != nil {
			t.Fatal(err)
		}
		return *out.MessageId
	}
	m := newMailboxIn(t, said, "true", "", "tokens: {app: {env: WEIR_TEST_APP, upstreams: [box]}, other: {env: WEIR_TEST_OTHER}}\nlog: debug")
	id := send(`{"path": "/box/in?a=1", "headers": {"Content-Type": "text/plain", "Title": "hello"}, "body": "done"}`)
	for len(m.letters()) == 0 {
		runtime.Gosched()
	}
	got := m.letters()[0]
	if got.Method != "POST" || got.RequestURI != "/in?a=1" || m.bodies[0] != "done" || got.Header.Get("Title") != "hello" || got.Header.Get("X-Correlation-Id") != id {
		t.Errorf("%s %s %q %v", got.Method, got.RequestURI, m.bodies[0], got.Header)
	}
	// A submission with that ID by the same caller returns the same delivery. Other callers cannot read it.
	const app, other = "X-Weir-Token: token-of-the-app", "X-Weir-Token: token-of-another"
	resp, again, text := m.post("/box/in?a=1", "done", async, app, "Content-Type: text/plain", "Title: hello", "Idempotency-Key: "+id)
	if resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s: the key is not the message's id", resp.StatusCode, text)
	}
	if r := m.endsAs(again.ID, delivery.Completed, app); r.Attempts != 1 {
		t.Errorf("%+v", r)
	}
	if resp, _, _ := m.send("GET", proxy.DeliveriesPath+again.ID, "", other); resp.StatusCode != 404 {
		t.Errorf("it is shown to another caller: %d", resp.StatusCode)
	}
	// Messages that cannot be stored are counted by reason.
	send("hello")
	m.counts(`weir_delivery_refused_total{upstream="",why="message"}`)
	send(`{"path": "/nowhere"}`)
	m.counts(`weir_delivery_refused_total{upstream="",why="route"}`)
	send(`{"path": "/box/x", "headers": {"Cookie": "tell-nobody"}}`)
	m.counts(`weir_delivery_refused_total{upstream="box",why="credential"}`)
	send(`{"path": "/box/x", "headers": {"Weir-Deliver-Before": "2001-01-01T00:00:00Z"}}`)
	m.counts(`weir_delivery_refused_total{upstream="box",why="request"}`)
	if n := len(m.letters()); n != 1 {
		t.Errorf("%d were delivered", n)
	}
	// A message whose handling panics is counted as well.
	m.run.deliveries.inbox.Failed(&inbox.PanicError{ID: "m-1", Value: "no such thing"})
	m.counts(`weir_delivery_refused_total{upstream="",why="panic"}`)
}

// A submitted request always gets a response: also when weir stops meanwhile, and when its caller is over its limit.
func TestWhatIsHandedInHasAnAnswer(t *testing.T) {
	m := newMailbox(t, "true", "    callers: true\n", "callers: {limits: {global: off, user-day: off, user: {rate: 1/h, burst: 1, scope: user}}}")
	hand := func(ctx context.Context) int {
		r := httptest.NewRequestWithContext(ctx, "POST", "/box/x", strings.NewReader("x"))
		r.Host = "localhost"
		r.Header.Set("Prefer", "respond-async")
		return m.run.handIn(r, "").Status
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := hand(ended); got != 503 {
		t.Errorf("with a context that has ended: %d, want 503", got)
	}
	if got := hand(t.Context()); got != 202 {
		t.Errorf("%d, want 202", got)
	}
	if got := hand(t.Context()); got != 429 {
		t.Errorf("beyond what its caller may have: %d, want 429", got)
	}
	m.run.models.counted().Drain()
	if got := hand(t.Context()); got != 503 && got != 429 {
		t.Errorf("while weir ends: %d, want one that is tried again", got)
	}
}

// The owner of queued requests changes only at a start. A reload that removes its token is refused, because all
// messages would become dead letters.
func TestAReloadKeepsTheOwnerOfAQueue(t *testing.T) {
	t.Setenv("WEIR_TEST_APP", "token-of-the-app")
	q := newQueue(t).made(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	says := func(tokens, owner string) {
		t.Helper()
		put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\n%sdeliveries: {file: deliveries.db, requests: {queue: '%s', region: us-east-1%s}}\nupstreams: {box: {url: 'http://box.test'}}\n", tokens, q.at, owner))
	}
	says("tokens: {app: {env: WEIR_TEST_APP}}\n", ", owner: app")
	s := startWith(t, file, os.LookupEnv)
	says("tokens: {other: {env: WEIR_TEST_APP}}\n", ", owner: other")
	s.reload <- syscall.SIGHUP
	if got := fmt.Sprint(s.log.waitFor(t, "reload: nothing was changed")["error"]); !strings.Contains(got, `remains "app" until a restart`) || !strings.Contains(got, "keep that token") {
		t.Errorf("renamed: %s", got)
	}
	says("", "") // without tokens, all callers are admitted
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
}

// counts waits until a metric exists.
func (m *mailbox) counts(want string) {
	m.Helper()
	for !strings.Contains(m.metrics(), want) {
		runtime.Gosched()
	}
}

// A queue without a dead letter queue would return unreadable messages forever.
func TestAQueueOfRequestsHasDeadLetters(t *testing.T) {
	q := newQueue(t)
	if _, err := q.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("requests")}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\ndeliveries: {file: d.db, requests: {queue: '%s', region: us-east-1}}\nupstreams: {box: {url: 'http://box.test'}}\n", q.at))
	startsWithProblem(t, file, "it has no dead letter queue", "RedrivePolicy")
}

// startsWithProblem checks that a weir starts and reports one problem.
func startsWithProblem(t *testing.T, file string, want ...string) {
	t.Helper()
	run, err := Start(file, Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	all := run.troubled()
	if len(all) != 1 {
		t.Fatalf("the problems are %+v, want one", all)
	}
	for _, text := range want {
		if !strings.Contains(all[0].Error, text) {
			t.Errorf("the problem is %q, want %q", all[0].Error, text)
		}
	}
}

func TestRegionsOfQueues(t *testing.T) {
	for host, want := range map[string]string{"sqs.eu-central-1.amazonaws.com": "eu-central-1", "sqs.cn-north-1.amazonaws.com.cn": "cn-north-1", "localhost": "", "sqs.localhost": "", "queue.amazonaws.com": ""} {
		if got := regionOf(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// JavaScript clients share the queues: their messages are delivered, and they find dead letters unchanged.
func TestJavaScriptOnTheQueues(t *testing.T) {
	q := newQueue(t).made(t)
	m := newMailboxIn(t, fmt.Sprintf("{file: deliveries.db, requests: {queue: '%s', region: us-east-1}}", q.at), "true", "", "")
	const client = `import {SQSClient, SendMessageBatchCommand, ReceiveMessageCommand} from '@aws-sdk/client-sqs'
const c = new SQSClient({region: 'us-east-1', endpoint: '%s', credentials: {accessKeyId: 'id', secretAccessKey: 'secret'}})
%s`
	servers.JavaScript(t, fmt.Sprintf(client, q.endpoint, `
const of = (n) => ({Id: 'm' + n, MessageBody: JSON.stringify({path: '/box/js', headers: {'Content-Type': 'text/plain'}, body: 'grüße ' + n})})
await c.send(new SendMessageBatchCommand({QueueUrl: '`+q.at+`', Entries: [of(1), of(2), of(3)]}))`))
	for len(m.letters()) < 3 {
		runtime.Gosched()
	}
	m.mu.Lock()
	got := strings.Join(slices.Sorted(slices.Values(m.bodies)), ", ")
	m.mu.Unlock()
	if got != "grüße 1, grüße 2, grüße 3" {
		t.Errorf("delivered %s", got)
	}
	if _, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.at + "-dead"), MessageBody: aws.String(`{"path": "/nowhere"}`)}); err != nil {
		t.Fatal(err)
	}
	if said := servers.JavaScript(t, fmt.Sprintf(client, q.endpoint, `
const got = await c.send(new ReceiveMessageCommand({QueueUrl: '`+q.at+`-dead'}))
console.log(got.Messages[0].Body)`)); said != "{\"path\": \"/nowhere\"}\n" {
		t.Errorf("its dead letter is %q", said)
	}
}
