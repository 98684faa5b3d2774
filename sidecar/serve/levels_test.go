package serve

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// The preset chat-levels has the limits of a chat. A refusal and its metric name the limit.
func TestLevelsOfAChat(t *testing.T) {
	for _, tt := range []struct {
		operation, without, level string
		burst, second             int // calls permitted at once, and in the following second
	}{
		{"connect", "", "connect", 500, 500},
		{"sendMessage", "", "sendMessage", 4000, 2000},
		{"", "", "stage", 7500, 5000},
		{"", "stage: off", "account", 10_000, 10_000},
		{"", "account: off, stage: off, month: {amount: 700, every: month}", "month", 700, 0},
	} {
		t.Run(tt.level, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, err := config.Parse("weir.yaml", []byte("upstreams: {chat: {url: 'https://h', preset: chat-levels, limits: {"+tt.without+"}}}"), noEnvironment)
				if err != nil {
					t.Fatal(err)
				}
				var lines bytes.Buffer
				metrics, err := weircw.New(weircw.Config{Lines: &lines})
				if err != nil {
					t.Fatal(err)
				}
				policy := f.Upstreams[0].Policy
				policy.MaxWait = -1 // refuses instead of waiting
				chat, err := weir.New("chat", policy, weir.Options{Events: metrics.Events()})
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range []int{tt.burst, tt.second} {
					if got := untilRefused(t, chat, tt.operation, tt.level); got != want {
						t.Errorf("%d calls went, want %d", got, want)
					}
					time.Sleep(time.Second)
				}
				if err := metrics.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				if got := lines.String(); !strings.Contains(got, `"ThrottledRequests"`) || !strings.Contains(got, `"Limit":"`+tt.level+`"`) {
					t.Errorf("the metric does not tell the level %s", tt.level)
				}
			})
		})
	}
	whole, err := config.Parse("weir.yaml", []byte("upstreams: {chat: {url: 'https://h', preset: chat-levels}}"), noEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range whole.Upstreams[0].Policy.Limits {
		if l.Name == "month" && l.Most() != 50_000_000 {
			t.Errorf("a month has %d", l.Most())
		}
	}
}

func noEnvironment(string) (string, bool) { return "", false }

// untilRefused returns how many calls were served before the limit refused one.
func untilRefused(t *testing.T, u *weir.Upstream, operation, level string) (n int) {
	for {
		p, err := u.Acquire(t.Context(), weir.Call{Operation: operation})
		if refusal, ok := errors.AsType[*weir.Refusal](err); ok {
			if refusal.Limit != level || refusal.RetryAfter <= 0 {
				t.Fatalf("refused by %s, come again after %v", refusal.Limit, refusal.RetryAfter)
			}
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
		n++
	}
}
