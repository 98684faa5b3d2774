package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// A halting body delivers its text line by line at intervals, and then blocks until the attempt is canceled.
type halting struct {
	r     *http.Request
	text  string
	every time.Duration
}

func (b *halting) Read(p []byte) (int, error) {
	if b.text == "" {
		<-b.r.Context().Done()
		return 0, errors.New("use of closed connection")
	}
	if b.every > 0 {
		time.Sleep(b.every)
	}
	line, rest, _ := strings.Cut(b.text, "\n")
	n := copy(p, line+"\n")
	b.text = rest
	return n, nil
}

func (*halting) Close() error { return nil }

// halts makes the provider send halting bodies.
func halts(c *channel, kind, text string, every time.Duration) {
	c.transport.Base = provided(func(r *http.Request) (*http.Response, error) {
		out := r.Clone(r.Context())
		if err := exchangeOf(r).Attempt(out); err != nil {
			return nil, err
		}
		return &http.Response{Status: "200 OK", StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: &halting{out, text, every}, Request: out, ContentLength: -1}, nil
	})
}

const streamed = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// A stalled answer ends at its timeout, streamed or not: 30 s after the first content, and 60 s before it.
func TestAnAnswerThatStallsEnds(t *testing.T) {
	const event = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n"
	const role = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\n"
	for _, tt := range []struct {
		name, body, kind, text string
		every                  time.Duration
		least, most            time.Duration
	}{
		{"after some words", streamed, "text/event-stream", role + event + event, 0, 30 * time.Second, 31 * time.Second},
		{"after slow words", streamed, "text/event-stream", role + strings.Repeat(event, 4), 14 * time.Second, 2 * time.Minute, 3 * time.Minute},
		{"before any word", streamed, "text/event-stream", role, 0, 60 * time.Second, 61 * time.Second},
		{"not a stream", prompt("gpt-4o", "hi"), "application/json", "{\"id\":\n", 0, 60 * time.Second, 61 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, o := shipped(t, "preset: openai, retry: {attempts: 1}") // the time of one attempt
				c := dig(t, llmsim.Config{}, p, o)
				halts(c, tt.kind, tt.text, tt.every)
				begun := time.Now()
				a, err := c.ask(t.Context(), tt.body)
				took := time.Since(begun)
				t.Logf("%v after %v: %q", err, took, a.body)
				if took < tt.least || took > tt.most {
					t.Errorf("after %v, want %v to %v", took, tt.least, tt.most)
				}
				if err == nil || err == io.EOF {
					t.Errorf("it ended well: %q", a.body)
				}
				if strings.Contains(tt.text, "content") && !strings.Contains(a.body, `"error"`) {
					t.Errorf("the stream does not say why it ended: %q", a.body)
				}
			})
		})
	}
}
