package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// letters returns a queue whose dead letter queue contains n messages.
func letters(t *testing.T, n int) (at string, count func() int64, tasks *servers.MoveTasks) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "us-east-1")
	tasks = servers.NewMoveTasks(t, servers.Fauxqs(t))
	c := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &tasks.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	at = tasks.URL + "/000000000000/requests"
	if _, err := (&inbox.Inbox{Queue: c, URL: at}).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(at + "-dead"), MessageBody: aws.String(fmt.Sprint("letter ", i))}); err != nil {
			t.Fatal(err)
		}
	}
	return at, func() int64 {
		t.Helper()
		m, err := inbox.MovesOf(t.Context(), c, at)
		if err != nil {
			t.Fatal(err)
		}
		return m.Messages
	}, tasks
}

// All messages of a dead letter queue return to the original queue, also if they were sent to it directly.
func TestMessagesAreMovedBack(t *testing.T) {
	at, left, _ := letters(t, 7)
	dead := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), world{args: append([]string{"dead"}, args...), out: &out, err: &out, env: noEnv})
		return out.String(), err
	}
	if said, err := dead("list", "-queue", at); err != nil || said != "7 messages in "+at+"-dead\n" {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := dead("redrive", "-queue", at, "-rate", "100/s"); err != nil || said != "7 of 7 moved\n" || left() != 0 {
		t.Errorf("%q, %v; %d are left", said, err, left())
	}
	if said, err := dead("list", "-queue", at); err != nil || !strings.Contains(said, "0 messages in ") || !strings.Contains(said, "COMPLETED, 7 of 7 moved") {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := dead("list", "-queue", at, "-json"); err != nil || !strings.Contains(said, `"messages":0,"last_move":{"status":"COMPLETED","moved":7,"of":7`) {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := dead("redrive", "-queue", at); err != nil || !strings.Contains(said, "0 moved: there is no message") {
		t.Errorf("%q, %v", said, err)
	}
	for _, args := range [][]string{{"redrive", "-queue", at, "-rate", "0.5/s"}, {"redrive", "-queue", at, "-rate", "501/s"}, {"redrive", "-queue", at, "-all"}, {"redrive", "-queue", at, "-upstream", "a"}, {"list", "-queue", at, "-reason", "rejected"}} {
		if said, err := dead(args...); err == nil || !strings.HasPrefix(said, "weir dead "+args[0]+": ") {
			t.Errorf("%v: %q, %v", args, said, err)
		}
	}
	if said, err := dead("redrive", "-queue", at+"-dead"); err == nil || !strings.Contains(err.Error(), "has no dead letter queue") {
		t.Errorf("%q, %v", said, err)
	}
}

// Stopping the command cancels the move. A command that finds a running move follows it.
func TestAMoveIsCancelled(t *testing.T) {
	at, left, _ := letters(t, 20)
	began, err := movesAt(t, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := began.Start(t.Context(), 2); err != nil { // takes ten seconds
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out bytes.Buffer
	said := heard{do: stop}
	err = run(ctx, world{args: []string{"dead", "redrive", "-queue", at}, out: &out, err: &said, env: noEnv})
	if err == nil || !strings.Contains(said.String(), "showing its progress") || !strings.Contains(out.String(), "the move was canceled; the other messages are unchanged") || left() < 10 {
		t.Errorf("%q %q, %v; %d are left", &out, &said.Buffer, err, left())
	}
}

// heard calls a function after a text was written.
type heard struct {
	bytes.Buffer
	do func()
}

func (h *heard) Write(b []byte) (int, error) {
	h.do()
	return h.Buffer.Write(b)
}

func movesAt(t *testing.T, at string) (*inbox.Moves, error) {
	host, _, _ := strings.Cut(at, "/000000000000/")
	return inbox.MovesOf(t.Context(), sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &host, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}), at)
}

// If some letters were skipped, the report does not claim that none matches.
func TestWhatIsLeftIsThere(t *testing.T) {
	for note, want := range map[string]string{"some were skipped": "0 redriven\nsome were skipped\n", "": "0 redriven: no dead letter matches\n"} {
		var out bytes.Buffer
		p := &changing{w: world{out: &out}, do: "redrive", note: note}
		if err := p.report(t.Context(), nil); err != nil || out.String() != want {
			t.Errorf("%q, %v; want %q", out.String(), err, want)
		}
	}
}
