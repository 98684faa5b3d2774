package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// metrics returns the metrics of the admin listener.
func (m *mailbox) metrics() string {
	m.Helper()
	resp, _, text := m.sendTo("http://"+m.run.admin.Addr().String(), "GET", "/metrics", "")
	if resp.StatusCode != http.StatusOK {
		m.Fatalf("metrics: %d %s", resp.StatusCode, text)
	}
	return text
}

// lines returns the log lines with a message.
func (p *page) lines(t *testing.T, message string) (all []map[string]any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for text := range strings.Lines(p.text.String()) {
		l := make(map[string]any)
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l["msg"] == message {
			all = append(all, l)
		}
	}
	return all
}

// Each request that is not stored is counted by reason and logged with the ID of its call.
func TestRequestsThatAreNotStoredAreTold(t *testing.T) {
	m := newMailbox(t, "always", "", "log: debug")
	m.stop()
	log := new(page)
	var err error
	if m.run, err = Start(m.file, Options{Env: os.LookupEnv, Log: log}); err != nil {
		t.Fatal(err)
	}
	_, first, _ := m.post("/box/x", "one", "Idempotency-Key: k", "X-Correlation-Id: stored")
	m.becomes(first.ID, delivery.Completed)
	m.post("/box/x", "one", "Idempotency-Key: k", "X-Correlation-Id: again")
	for why, tt := range map[string]struct {
		body    string
		headers []string
	}{
		"credential":     {"x", []string{"Authorization: Bearer tell-nobody"}},
		"condition":      {"x", []string{"If-Match: 1"}},
		"request":        {"x", []string{"Weir-Not-Before: tomorrow"}},
		"body_too_large": {strings.Repeat("x", 20<<20), nil},
		"key_reused":     {"two", []string{"Idempotency-Key: k"}},
	} {
		resp, _, text := m.post("/box/x", tt.body, append(tt.headers, "X-Correlation-Id: id-"+why)...)
		if resp.StatusCode < 400 {
			t.Errorf("%s: %d %s", why, resp.StatusCode, text)
		}
		if want := fmt.Sprintf("weir_delivery_refused_total{upstream=\"box\",why=%q} 1\n", why); !strings.Contains(m.metrics(), want) {
			t.Errorf("the metrics do not say %s", want)
		}
		found := false
		for _, l := range log.lines(t, "request not stored") {
			found = found || l["reason"] == why && l["id"] == "id-"+why && l["level"] == "WARN" && l["upstream"] == "box"
		}
		if !found {
			t.Errorf("no line says %s", why)
		}
	}
	for message, want := range map[string]string{"request stored": "stored", "delivery attempted": "stored", "delivery ended": "stored"} {
		all := log.lines(t, message)
		if len(all) == 0 || all[0]["id"] != want || all[0]["delivery"] != first.ID || all[0]["level"] != "DEBUG" {
			t.Errorf("%s: %v", message, all)
		}
	}
	if all := log.lines(t, "request stored"); len(all) != 2 || all[1]["fresh"] != "false" {
		t.Errorf("stored: %v", all)
	}
	if strings.Contains(log.text.String(), "tell-nobody") {
		t.Error("the log holds a credential")
	}
}
