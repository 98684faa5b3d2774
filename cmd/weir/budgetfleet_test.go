//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A spender is two processes that share a budget of 1.50 dollars through Redis. A call holds about one dollar.
type spender struct {
	a, b *member
	came chan struct{} // a call that contains "slow" has reached the upstream
	slow chan struct{} // ends it
}

func newSpender(t *testing.T) *spender {
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	s := &spender{came: make(chan struct{}, 1), slow: make(chan struct{})}
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	fields := fmt.Sprintf("{url: %q, preset: openai-compatible, max_wait: 3s, limits: {money: {amount: 1.50, every: month, unit: usd, hold: most}}}", up.URL)
	store := fmt.Sprintf("redis: %q", redis.URL())
	s.a, s.b = enlistWith(t, fields, store), enlistWith(t, fields, store)
	return s
}

func (s *spender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	output := 10
	switch {
	case strings.Contains(string(body), "slow"):
		s.came <- struct{}{}
		select {
		case <-s.slow:
		case <-r.Context().Done():
		}
	case strings.Contains(string(body), "dear"):
		output = 75_000
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":%d}}`, output)
}

// call makes a call that may have 100,000 tokens of output.
func (s *spender) call(m *member, text string) (status int, answer string) {
	resp, err := http.Post("http://"+m.listen+"/up/v1/chat/completions", "application/json", strings.NewReader(`{"model":"gpt-4o","max_tokens":100000,"messages":[{"role":"user","content":"`+text+`"}]}`))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("X-Weir-Refused") + string(body)
}

// begin makes a call that ends later.
func (s *spender) begin(t *testing.T, m *member, text string) (ended chan int) {
	ended = make(chan int, 1)
	go func() {
		status, answer := s.call(m, text)
		if status != 200 {
			t.Log(answer)
		}
		ended <- status
	}()
	if text == "slow" {
		select {
		case <-s.came:
		case status := <-ended:
			t.Fatalf("the call ended with status %d", status)
		}
	}
	return ended
}

const heldByOthers = "1.50 USD are not spent, but calls in flight hold 1.00"

// A call of one process waits for the call of another, and proceeds when that was cheap. A spent budget refuses the calls of
// both.
func TestProcessesShareABudgetInDollars(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	first := s.begin(t, s.a, "slow")
	if status, answer := s.call(s.b, "hi"); status != 429 || !strings.Contains(answer, "rate_limited") || !strings.Contains(answer, heldByOthers) {
		t.Errorf("while the other process holds the budget: %d %s", status, answer)
	}
	second := s.begin(t, s.b, "hi")
	close(s.slow)
	if x, y := <-first, <-second; x != 200 || y != 200 {
		t.Errorf("status %d and %d, want 200", x, y)
	}
	if status, answer := s.call(s.a, "dear"); status != 200 {
		t.Errorf("a dear call: %d %s", status, answer)
	}
	for _, m := range []*member{s.b, s.a} {
		if status, answer := s.call(m, "hi"); status != 429 || !strings.Contains(answer, "quota_exhausted") || !strings.Contains(answer, "the budget is spent: 0.75") {
			t.Errorf("with a spent budget: %d %s", status, answer)
		}
	}
}

// The hold of a process that was killed still counts as held.
func TestBudgetHoldOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	s := newSpender(t)
	s.begin(t, s.a, "slow")
	if err := s.a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if status, answer := s.call(s.b, "hi"); status != 429 || !strings.Contains(answer, "rate_limited") || !strings.Contains(answer, heldByOthers) {
		t.Errorf("after the other process was killed: %d %s", status, answer)
	}
}
