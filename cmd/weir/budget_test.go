//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/served"
)

// budgeted starts a sidecar with a budget of 0.03 dollars. It returns a function that calls a model for 0.0105 dollars.
func budgeted(t *testing.T, store string) (s sidecar, call func() int) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"type":"message","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":1000,"output_tokens":500}}`)
	}))
	t.Cleanup(api.Close)
	s = sidecar{served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n%scallers: {keys: {user: \"header:X-User\"}, limits: {global: off, user: off, user-day: off, money: {amount: 0.03, every: day, unit: usd, scope: user}}}\nupstreams: {claude: {preset: anthropic, url: %q}}\n", store, api.URL))}
	return s, func() int {
		r, _ := http.NewRequest("POST", "http://"+s.Serve.Listen+"/claude/v1/messages", bytes.NewReader([]byte(`{"model":"claude-sonnet-4-5","max_tokens":500,"messages":[{"role":"user","content":"Is it?"}]}`)))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-User": {"alice"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
}

// weir budget give prints the returned and the remaining dollars. A refused caller can call again. Without a reason, nothing
// happens.
func TestBudgetGiveLetsCallerContinue(t *testing.T) {
	t.Parallel()
	s, call := budgeted(t, "")
	calls := 0
	for ; call() == http.StatusOK; calls++ {
	}
	_, complaint, err := s.order(t, "budget", "give", "-key", "alice", "0.0105")
	if !errors.Is(err, cli.ErrUsage) || !strings.Contains(complaint, "--reason is missing") || call() != http.StatusTooManyRequests {
		t.Errorf("without a reason: %q, %v", complaint, err)
	}
	out, _, err := s.order(t, "budget", "give", "-key", "alice", "0.0105", "--reason", "the model was mispriced")
	left := fmt.Sprintf("%.4f", 0.03-float64(calls-1)*0.0105)
	if want := "callers money of alice: 0.0105 USD given back, " + strings.TrimRight(left, "0"); err != nil || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "/0.03 USD remain\n") {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if first, second := call(), call(); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Errorf("two calls afterwards got %d and %d", first, second)
	}
	if out, _, err := s.order(t, "budget", "give", "-key", "alice", "-limit", "callers/money", "5", "--reason", "x", "--json"); err != nil || !strings.Contains(out, `"given_usd":0.0`) || !strings.Contains(out, `"left":30000`) {
		t.Errorf("as JSON: %q, %v", out, err)
	}
	if _, _, err := s.order(t, "budget", "give", "-key", "bob", "5", "--reason", "x"); err == nil || !strings.Contains(err.Error(), `no call with this key is known to callers/money`) {
		t.Errorf("an unknown key: %v", err)
	}
}

// A budget that processes share is refused, and does not change.
func TestBudgetGiveRefusesSharedBudget(t *testing.T) {
	t.Parallel()
	s, call := budgeted(t, "store: {file: "+filepath.Join(t.TempDir(), "limits")+"}\n")
	eventually(t, "it serves", func() bool { return call() == http.StatusOK })
	for call() == http.StatusOK {
	}
	_, _, err := s.order(t, "budget", "give", "-key", "alice", "5", "--reason", "x")
	if err == nil || !strings.Contains(err.Error(), "several processes share this budget") || !strings.Contains(err.Error(), "units cannot be given back; raise the limit instead") {
		t.Errorf("got %v", err)
	}
	if got := call(); got != http.StatusTooManyRequests {
		t.Errorf("a call afterwards got %d", got)
	}
}
