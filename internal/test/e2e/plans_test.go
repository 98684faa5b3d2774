//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A quota with a plan has three times the amount. A user who exhausts it at two processes with a shared Redis has none left
// with or without the plan: neither at these, nor at a process that starts after they have ended.
func TestAQuotaOfPlansIsOneAtEveryProcess(t *testing.T) {
	_, sim := provider(t, llmsim.Config{})
	yaml := head + fmt.Sprintf("store: {redis: %q}\ncallers: {limits: {global: off, user: off, user-day: {amount: 20, every: month, scope: user, plans: {premium: 3x}}}}\n"+
		"upstreams: {chat: {preset: openai, url: %q}}\n", servers.Redis(t).URL(), sim)
	first := served.Launch(t, yaml)
	served.Init(t, nil, first.File)
	first.Serve = first.WaitFor("serving")
	second := start(t, yaml)
	n := answered(t, first, "premium", 25)
	for late := time.Now().Add(patience); n < 60 && time.Now().Before(late); { // units that a process reserved for outages return
		n += answered(t, second, "premium", 100) + answered(t, first, "premium", 100)
	}
	if n != 60 {
		t.Errorf("%d calls went with the plan, want 60", n)
	}
	for _, w := range []*process{first, second} {
		usedUp(t, w, "")
		usedUp(t, w, "premium")
	}
	for _, w := range []*process{first, second} {
		w.Signal(syscall.SIGTERM)
		if err := w.Exited(); err != nil {
			t.Error(err)
		}
	}
	third := start(t, yaml)
	for _, plan := range []string{"", "premium", "other"} {
		if n := answered(t, third, plan, 3); n != 0 {
			t.Errorf("%d calls went with plan %q at a process that is new", n, plan)
		}
	}
}

// answered returns the number of answered calls with a plan before a refusal.
func answered(t *testing.T, w *process, plan string, most int) (n int) {
	t.Helper()
	for ; n < most; n++ {
		switch status := chat(t, w, plan); status {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			return n
		default:
			t.Fatalf("call %d with plan %q: %d", n, plan, status)
		}
	}
	return n
}

// usedUp waits until a process refuses calls with a plan.
func usedUp(t *testing.T, w *process, plan string) {
	t.Helper()
	for late := time.Now().Add(patience); chat(t, w, plan) != http.StatusTooManyRequests; {
		if time.Now().After(late) {
			t.Errorf("calls with plan %q go on", plan)
			return
		}
	}
}

// chat calls a model as a user with a plan.
func chat(t *testing.T, w *process, plan string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.Serve.Listen+"/chat/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-test")
	r.Header.Set("X-User", "ann")
	if plan != "" {
		r.Header.Set("X-Plan", plan)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
