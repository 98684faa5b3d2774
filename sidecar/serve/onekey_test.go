package serve

import (
	"strings"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// A key belongs to a delivery or to direct calls, whichever comes first. Both can use a freed key.
func TestAKeyIsOfADeliveryOrOfDirectCalls(t *testing.T) {
	m := newMailbox(t, "true, idempotency: keep", "    max_pause: 1ms", "")
	conflicts := func(what, key, body string, headers ...string) {
		t.Helper()
		if resp, _, text := m.post("/box/x", body, append(headers, "Idempotency-Key: "+key)...); resp.StatusCode != 409 || !strings.Contains(text, "CONFLICT") || !strings.Contains(text, "the Idempotency-Key ") {
			t.Errorf("%s: %d %s, want 409", what, resp.StatusCode, text)
		}
	}
	m.post("/box/x", "x", "Idempotency-Key: direct")
	conflicts("later, after a direct call", "direct", "x", async)
	if resp, _, _ := m.post("/box/x", "x", "Idempotency-Key: direct"); resp.Header.Get("Idempotency-Replayed") == "" {
		t.Error("the first answer is not given again")
	}

	_, r, text := m.post("/box/x", "x", async, "Idempotency-Key: later")
	if r.ID == "" {
		t.Fatal(text)
	}
	m.becomes(r.ID, delivery.Completed)
	for _, body := range []string{"x", "y"} {
		conflicts("directly, after a delivery", "later", body)
	}
	if _, again, text := m.post("/box/x", "x", async, "Idempotency-Key: later"); again.ID != r.ID {
		t.Errorf("the same: %s", text)
	}
	if n := len(m.letters()); n != 2 {
		t.Errorf("sent %d times, want twice", n)
	}

	m.answers(429) // does not settle the call: its key is free again
	m.post("/box/x", "x", "Idempotency-Key: free")
	m.answers(200)
	if resp, _, text := m.post("/box/x", "x", async, "Idempotency-Key: free"); resp.StatusCode != 202 {
		t.Errorf("a key that is free again: %d %s", resp.StatusCode, text)
	}
}

// Concurrent submissions of the same request get the same delivery.
func TestTheSameAtOnceIsOneDelivery(t *testing.T) {
	m := newMailbox(t, "true, idempotency: keep", "", "")
	var all sync.WaitGroup
	var ids sync.Map
	for range 8 {
		all.Go(func() {
			resp, r, text := m.post("/box/x", "x", async, "Idempotency-Key: k")
			for resp.Header.Get("Retry-After") != "" && r.ID == "" { // a slow machine
				resp, r, text = m.post("/box/x", "x", async, "Idempotency-Key: k")
			}
			if r.ID == "" {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			ids.Store(r.ID, true)
		})
	}
	all.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d deliveries, want one", n)
	}
}
