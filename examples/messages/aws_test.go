package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/awsx/lambdax"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A stack is template.yaml, deployed on emulators.
type stack struct {
	*world
	v     *template
	names map[string]string // values of references: "Queue", "Queue.Arn"
	f     *Functions
	sqs   *sqs.Client
	table *Table
}

// newStack deploys the template and runs its functions as Lambda does, except for messages that hold keeps back.
func newStack(t *testing.T, c Choices) *stack {
	tables, queues := servers.Dynalite(t), servers.Fauxqs(t)
	for name, v := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_DYNAMODB": tables.Endpoint(), "AWS_ENDPOINT_URL_SQS": queues.Endpoint(), "AWS_ENDPOINT_URL_SNS": queues.Endpoint(),
	} {
		t.Setenv(name, v)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{world: &world{t: t, ntfy: newNtfy(t), issuer: newIssuer(t), log: &lines{}}, v: readTemplate(t), names: make(map[string]string), sqs: sqs.NewFromConfig(cfg)}
	s.as = s.issuer.token(t, "ada", "", nil)
	for name, v := range map[string]string{"Jwks": s.issuer.URL, "Issuer": s.issuer.URL, "NtfyTopic": "team", "Open": c.Open, "Lost": c.Lost} {
		s.names[name] = v
	}
	s.deploy(cfg)
	log := newLog(s.log)
	ntfy, err := NewNtfy("", "http://ntfy.sh", c, log, nil, s.ntfy.asNtfySh())
	if err != nil {
		t.Fatal(err)
	}
	s.f = &Functions{Config: cfg, Log: log, Ntfy: ntfy}
	s.f.Env = s.environment("Api")
	s.table = s.f.table()
	web, err := s.f.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// properties returns a resource's properties as JSON, which the API calls accept unchanged.
func (s *stack) properties(name string) []byte {
	all := make(map[string]any)
	for field, n := range s.v.Resources[name].Properties {
		all[field] = s.value(&n)
	}
	b, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// value returns a template value with resolved references.
func (s *stack) value(n *yaml.Node) (v any) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = s.value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, c := range n.Content {
			l = append(l, s.value(c))
		}
		return l
	}
	if n.Tag == "!Ref" || n.Tag == "!GetAtt" {
		return s.names[n.Value]
	}
	if err := n.Decode(&v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *stack) deploy(cfg aws.Config) {
	ctx, t := s.t.Context(), s.t
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tables, topics := dynamodb.NewFromConfig(cfg), sns.NewFromConfig(cfg)
	in := &dynamodb.CreateTableInput{TableName: aws.String("messages")}
	check(json.Unmarshal(s.properties("Table"), in))
	_, err := tables.CreateTable(ctx, in)
	check(err)
	check(dynamodb.NewTableExistsWaiter(tables, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second }).Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute))
	s.names["Table"] = "messages"
	topic, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("messages")})
	check(err)
	s.names["Topic"] = *topic.TopicArn
	for _, name := range []string{"DeadLetters", "Queue"} {
		var p map[string]any
		check(json.Unmarshal(s.properties(name), &p))
		attributes := make(map[string]string)
		for field, v := range p {
			if attributes[field] = fmt.Sprint(v); field == "RedrivePolicy" {
				b, _ := json.Marshal(v)
				attributes[field] = string(b)
			}
			if n, ok := v.(float64); ok {
				attributes[field] = fmt.Sprint(int(n))
			}
		}
		q, err := s.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		check(err)
		got, err := s.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: q.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
		check(err)
		s.names[name], s.names[name+".Arn"] = *q.QueueUrl, got.Attributes["QueueArn"]
		for field, want := range attributes {
			if field != "SqsManagedSseEnabled" && field != "RedrivePolicy" && got.Attributes[field] != want {
				t.Errorf("%s: %s is %q, want %q", name, field, got.Attributes[field], want)
			}
		}
	}
	var policy struct{ PolicyDocument json.RawMessage }
	check(json.Unmarshal(s.properties("QueuePolicy"), &policy))
	_, err = s.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: aws.String(s.names["Queue"]), Attributes: map[string]string{"Policy": string(policy.PolicyDocument)}})
	check(err)
	var sub struct {
		TopicArn, Protocol, Endpoint string
		RawMessageDelivery           bool
	}
	check(json.Unmarshal(s.properties("Subscription"), &sub))
	_, err = topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &sub.TopicArn, Protocol: &sub.Protocol, Endpoint: &sub.Endpoint, Attributes: map[string]string{"RawMessageDelivery": fmt.Sprint(sub.RawMessageDelivery)}})
	check(err)
}

// environment returns a function's environment from the template.
func (s *stack) environment(function string) func(string) string {
	var p struct {
		Environment struct{ Variables map[string]string }
	}
	if err := json.Unmarshal(s.properties(function), &p); err != nil {
		s.t.Fatal(err)
	}
	return func(name string) string { return p.Environment.Variables[name] }
}

// run passes messages of the queue to the processor until the test ends, as Lambda does.
func (s *stack) run() {
	f := *s.f
	f.Env = s.environment("Processor")
	batch, err := f.Processor()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var over sync.WaitGroup
	s.t.Cleanup(func() { cancel(); over.Wait() })
	over.Go(func() {
		for ctx.Err() == nil {
			got, err := s.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.names["Queue"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
			if err != nil || len(got.Messages) == 0 {
				continue
			}
			if err := s.bring(ctx, batch, got.Messages); err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
		}
	})
}

// bring handles a batch and deletes the messages that need no redelivery.
func (s *stack) bring(ctx context.Context, batch Batch, all []sqstypes.Message) error {
	var e events.SQSEvent
	for _, m := range all {
		e.Records = append(e.Records, events.SQSMessage{MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, EventSourceARN: s.names["Queue.Arn"]})
	}
	within, cancel := context.WithTimeout(ctx, time.Minute) // the function's timeout
	defer cancel()
	out, err := batch(within, e)
	for _, m := range all {
		again := slices.ContainsFunc(out.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == *m.MessageId })
		if !again {
			_, bad := s.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: aws.String(s.names["Queue"]), ReceiptHandle: m.ReceiptHandle})
			err = errors.Join(err, bad)
		}
	}
	return err
}

// letter waits for a dead letter.
func (s *stack) letter() sqstypes.Message {
	for {
		got, err := s.sqs.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.names["DeadLetters"]), WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"}})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(got.Messages) > 0 {
			return got.Messages[0]
		}
	}
}

// A message goes from the API through topic, queue and processor to ntfy, with the real SDK.
func TestTheAWSForm(t *testing.T) {
	s := newStack(t, Choices{"wait", "again"})
	s.run()
	id := s.post("prod", "build 81 is done", "Idempotency-Key", "k")
	if again := s.post("prod", "build 81 is done", "Idempotency-Key", "k"); again != id {
		t.Errorf("the same key: %s and %s", id, again)
	}
	got := <-s.ntfy.got
	s.log.wait(t, "message sent", of(id))
	m := s.ask("GET", "/api/messages/"+id, "")
	if m.Status != Sent || m.Notification != Made || m.NotificationID != got.ID || m.Attempts != 1 || got.Topic != "team-prod" || m.Text != "build 81 is done" {
		t.Errorf("%s; ntfy got %+v", m.text, got)
	}
	if got := s.ask("POST", "/api/messages", `{"stage":"prod","text":"two"}`, "Idempotency-Key", "k"); got.status != 422 {
		t.Errorf("another message under the key: %d %s", got.status, got.text)
	}
	// A repeated announcement refers to a completed message.
	it, err := s.table.get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	it.Announced, it.Status = false, Queued
	it.Fence-- // a stale copy, as a slow reader sees it
	if err := s.table.announce(t.Context(), it); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 4 {
		ids = append([]string{s.post("dev", fmt.Sprint(i))}, ids...)
	}
	for _, id := range ids {
		s.log.wait(t, "message sent", of(id))
	}
	var listed []string
	for next := "?stage=dev&limit=3"; next != ""; {
		page := s.ask("GET", "/api/messages"+next, "")
		for _, m := range page.Messages {
			listed = append(listed, m.ID)
		}
		if next = ""; page.Next != "" {
			next = "?stage=dev&limit=3&cursor=" + page.Next
		}
	}
	if !slices.Equal(listed, ids) {
		t.Errorf("listed %v, want %v", listed, ids)
	}
	if got := s.ask("GET", "/api/messages?cursor=x", ""); got.status != 400 {
		t.Errorf("a cursor of nothing: %d %s", got.status, got.text)
	}
	op := s.operator()
	if got := op.ask("GET", "/api/metrics", ""); !strings.Contains(got.text, `"dev":{"failed":0,"queued":0,"sending":0,"sent":4}`) || !strings.Contains(got.text, `"stale":false`) {
		t.Errorf("%d %s", got.status, got.text)
	}
	if n := s.ntfy.requests(); n != 5 {
		t.Errorf("%d requests for 5 messages", n)
	}
}

// A stored message that was not published, because SNS failed or the function ended, is published by the scheduler.
func TestWhatWasNotAnnouncedIsSwept(t *testing.T) {
	s := newStack(t, Choices{"wait", "again"})
	topic := s.table.TopicARN
	s.table.TopicARN += "-gone"
	m, err := s.table.Put(t.Context(), Message{Owner: "ada", Stage: "dev", Text: "one"}, "k")
	if err != nil {
		t.Fatal(err)
	}
	s.table.TopicARN = topic
	s.run()
	if err := s.table.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil { // it is not that old
		t.Fatal(err)
	}
	if n := s.ntfy.requests(); n != 0 {
		t.Errorf("%d requests", n)
	}
	if err := s.table.Sweep(t.Context(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.log.wait(t, "message sent", of(m.ID))
}

// A function that ends while it sends leaves its claim. After the claim expires, ntfy may have the message.
func TestAProcessorEnds(t *testing.T) {
	for _, tt := range []struct {
		lost string
		want Status
	}{{"again", Sent}, {"stop", Failed}} {
		t.Run(tt.lost, func(t *testing.T) {
			s := newStack(t, Choices{"wait", tt.lost})
			m, err := s.table.Put(t.Context(), Message{Owner: "ada", Stage: "dev", Text: "one"}, "")
			if err != nil {
				t.Fatal(err)
			}
			it, err := s.table.get(t.Context(), m.ID)
			if err != nil {
				t.Fatal(err)
			}
			old := *it
			it.Status, it.Until, it.Attempts = Sending, time.Now().Add(time.Hour).UnixMilli(), 1
			if err := s.table.save(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			if err := s.table.save(t.Context(), &old); !errors.Is(err, errOther) {
				t.Errorf("an older one was written: %v", err)
			}
			p := &Processor{Table: s.table, Ntfy: s.f.Ntfy, Topic: "team", Lease: time.Minute}
			announced := &lambdax.Message{SQSMessage: events.SQSMessage{MessageId: "m", Body: fmt.Sprintf(`{"id":%q}`, m.ID)}}
			if err := p.Handle(t.Context(), announced); !errors.Is(err, errBusy) || s.ntfy.requests() != 0 {
				t.Errorf("while it is claimed: %v, %d requests", err, s.ntfy.requests())
			}
			late := *it // the item before another writer changed it
			late.Status, late.Until = Queued, 0
			it.Until = time.Now().Add(-time.Second).UnixMilli()
			if err := s.table.save(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			if maybe, err := s.table.claim(t.Context(), &late, -time.Second); !maybe || err != nil {
				t.Errorf("claimed %v, %v", maybe, err)
			}
			s.run() // it was published
			line := map[Status]string{Sent: "message sent", Failed: "message failed"}[tt.want]
			s.log.wait(t, line, of(m.ID))
			got := s.ask("GET", "/api/messages/"+m.ID, "")
			if got.Status != tt.want || tt.want == Failed && (got.Reason != "unknown" || got.Notification != Unknown || s.ntfy.requests() != 0) {
				t.Errorf("%s after %d requests", got.text, s.ntfy.requests())
			}
		})
	}
}

// Messages that ntfy rejects and invalid announcements go directly to the dead letters. Failed messages are retried.
func TestDeadLettersOfTheAWSForm(t *testing.T) {
	s := newStack(t, Choices{"wait", "again"})
	s.ntfy.plays(away)
	s.names["NtfyTopic"] = "team"
	s.run()
	id := s.post("dev", "one")
	s.log.wait(t, "message queued", of(id))
	s.ntfy.plays(nil)
	s.log.wait(t, "message sent", of(id))
	if m := s.ask("GET", "/api/messages/"+id, ""); m.Attempts != 2 || m.Status != Sent {
		t.Errorf("%s", m.text)
	}
	if _, err := s.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(s.names["Queue"]), MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	if l := s.letter(); *l.Body != "hello" || !strings.Contains(*l.MessageAttributes[lambdax.WhyAttribute].StringValue, "no announcement") {
		t.Errorf("%+v", l)
	}
}

// With the breaker open and "fail" configured, messages fail immediately.
func TestTheBreakerOfTheAWSForm(t *testing.T) {
	s := newStack(t, Choices{"fail", "again"})
	for _, b := range s.f.Ntfy.Upstream.Breakers() {
		b.ForceOpen(s.f.Ntfy.Upstream.Now(), 0)
	}
	// The processor may have read a message before it was marked as published.
	p := &Processor{Table: s.table, Ntfy: s.f.Ntfy, Topic: "team", Lease: time.Minute}
	it, err := s.table.get(t.Context(), s.post("dev", "zero"))
	if err != nil {
		t.Fatal(err)
	}
	it.Fence, it.Announced = it.Fence-1, false
	if err := p.send(t.Context(), it); errors.Is(err, errOther) || it.Status != Failed {
		t.Errorf("%v; it is %s", err, it.Status)
	}
	s.run()
	id := s.post("prod", "one")
	if line := s.log.wait(t, "message failed", of(id)); line["level"] != "ERROR" || line["reason"] != "ntfy.sh service unavailable" {
		t.Errorf("%v", line)
	}
	if l := s.letter(); !strings.Contains(*l.Body, id) {
		t.Errorf("%+v", l)
	}
	if m := s.ask("GET", "/api/messages?status=failed&stage=prod", ""); len(m.Messages) != 1 || m.Messages[0].Reason != "ntfy.sh service unavailable" || s.ntfy.requests() != 0 {
		t.Errorf("%s after %d requests", m.text, s.ntfy.requests())
	}
}

// Several schedulers create one message for each time.
func TestSchedulersOfTheAWSForm(t *testing.T) {
	s := newStack(t, Choices{"wait", "again"})
	e := entry(t, "minutely", "* * * * *", "UTC")
	now := time.Date(2026, 11, 23, 12, 0, 30, 0, time.UTC)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			(&Schedule{[]Entry{e}, s.table, newLog(s.log), 5 * time.Minute}).Tick(t.Context(), now)
		})
	}
	all.Wait()
	counts, err := s.table.Count(t.Context())
	if err != nil || counts["prod"][Queued] != 5 {
		t.Errorf("%v, %v; want 5", counts, err)
	}
}
