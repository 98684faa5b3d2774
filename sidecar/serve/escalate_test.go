package serve

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe/notify"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// The configured parts are built, with secrets from the environment only.
func TestEscalation(t *testing.T) {
	env := map[string]string{"HOOK": "http://127.0.0.1:1/", "HOOK_SECRET": "0123456789abcdef0123", "TOPIC": "weir-alerts"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	file := &config.File{CloudWatch: &config.CloudWatch{}, Notify: &config.Notify{WebhookEnv: "HOOK", WebhookSecretEnv: "HOOK_SECRET", NtfyTopicEnv: "TOPIC"}}
	log := discard()
	e, err := newEscalation(file, lookup, log)
	if err != nil || e.metrics == nil || e.notifier == nil {
		t.Fatal(err)
	}
	e.close(log)
	delete(env, "HOOK_SECRET")
	if _, err := newEscalation(file, lookup, log); err == nil || !strings.Contains(err.Error(), "HOOK_SECRET") {
		t.Errorf("without a secret: %v", err)
	}
	if e, err := newEscalation(&config.File{}, lookup, log); err != nil || e.metrics != nil || e.notifier != nil {
		t.Errorf("nothing is named: %+v, %v", e, err)
	}
}

// A notification reaches its webhook with a signature.
func TestAMessageReachesItsWebhook(t *testing.T) {
	const secret = "0123456789abcdef0123"
	got := make(chan bool, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- json.Valid(b) && r.Header.Get(notify.SignatureHeader) != ""
	}))
	defer hook.Close()
	env := map[string]string{"HOOK": hook.URL, "HOOK_SECRET": secret}
	e, err := newEscalation(&config.File{Notify: &config.Notify{WebhookEnv: "HOOK", WebhookSecretEnv: "HOOK_SECRET"}},
		func(name string) (string, bool) { v, ok := env[name]; return v, ok }, discard())
	if err != nil {
		t.Fatal(err)
	}
	e.fleet().Fallback(awayEvent)
	if !<-got {
		t.Error("the message is not signed JSON")
	}
	e.close(discard())
}

// If a reload changes the address of an upstream whose open breaker was notified, a notification reports that it is
// over.
func TestAReplacedUpstreamsBreakerIsOver(t *testing.T) {
	const secret = "0123456789abcdef0123"
	got := make(chan notify.Message, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m notify.Message
		_ = json.NewDecoder(r.Body).Decode(&m)
		got <- m
	}))
	defer hook.Close()
	hear := func(resolved bool) {
		t.Helper()
		select {
		case m := <-got:
			if m.Kind != notify.BreakerOpen || m.Resolved != resolved || m.Upstream != "up" {
				t.Errorf("told of %+v", m)
			}
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
	}
	env := map[string]string{"HOOK": hook.URL, "HOOK_SECRET": secret}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	const rest = "\nnotify: {webhook_env: HOOK, webhook_secret_env: HOOK_SECRET, kinds: [breaker_open]}"
	write(t, file, "http://127.0.0.1:1", rest)
	s := startWith(t, file, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	s.proxy.Upstreams()["up"].Breaker("").ForceOpen(0, 0)
	hear(false)
	write(t, file, "http://127.0.0.1:2", rest)
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	hear(true)
}

var awayEvent = fleet.FallbackEvent{Away: true, Err: errors.New("no answer")}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
