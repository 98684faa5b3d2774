package serve

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// A delivery is found under its key after its time has passed. A different request under the key gets 422, and a new
// request 400.
func TestAKeyIsKnownWhenItsTimeHasPassed(t *testing.T) {
	t.Setenv("WEIR_TEST_CREDENTIAL", "Bearer of-weir-itself")
	m := newMailbox(t, "always", "    credentials: {Authorization: WEIR_TEST_CREDENTIAL}\n    deliver_schedule: messaging", "")
	token := func(left time.Duration) string {
		claims := fmt.Sprintf(`{"sub":"a","exp":%d}`, time.Now().Add(left).Unix())
		return "Authorization: Bearer eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	const past = "2001-01-01T00:00:00Z"
	for key, tt := range map[string]struct{ first, late, why string }{
		"end":   {"Weir-Deliver-Before: 2101-01-01T00:00:00Z", "Weir-Deliver-Before: " + past, "has passed"},
		"token": {token(time.Hour), token(time.Second), "token expires"},
		"begin": {"", "Weir-Not-Before: " + past, "is too far in the past"},
	} {
		id := ""
		if tt.first != "" {
			_, r, text := m.post("/box/x", "x", "Idempotency-Key: "+key, tt.first)
			if id = r.ID; id == "" {
				t.Fatal(text)
			}
		} else { // stores it as if accepted before its time passed
			_, r, _ := m.post("/box/x", "x")
			d, err := m.run.deliveries.Get(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			d.ID, d.Key = "", key
			d.NotBefore, _ = time.Parse(time.RFC3339, past)
			if d, _, err = m.run.deliveries.Accept(t.Context(), &d.Request); err != nil {
				t.Fatal(err)
			}
			id = d.ID
		}
		m.becomes(id, delivery.Completed)
		resp, r, text := m.post("/box/x", "x", "Idempotency-Key: "+key, tt.late)
		if resp.StatusCode != 200 || r.ID != id || resp.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: the same, late: %d %s, want 200 and %s", key, resp.StatusCode, text, id)
		}
		if resp, _, text := m.post("/box/x", "y", "Idempotency-Key: "+key, tt.late); resp.StatusCode != 422 {
			t.Errorf("%s: another, late: %d %s, want 422", key, resp.StatusCode, text)
		}
		for _, headers := range [][]string{{tt.late}, {tt.late, "Idempotency-Key: new-" + key}} {
			if resp, _, text := m.post("/box/x", "x", headers...); resp.StatusCode != 400 || !strings.Contains(text, tt.why) {
				t.Errorf("%s: a new one, late: %d %s, want 400", key, resp.StatusCode, text)
			}
		}
	}
}

// Fields of ntfy messages in headers are stored under each of their names.
func TestHeadersOfNtfyAreKept(t *testing.T) {
	m := newMailbox(t, "always", "    preset: ntfy\n    deliver_headers: [X-Mine]", "")
	said := []string{"X-Title: t", "Prio: high", "Delay: 30min", "X-E-Mail: a@example.com", "UnifiedPush: 1", "X-Mine: 1", "Md: yes"}
	_, r, text := m.post("/box/x", "x", said...)
	if r.ID == "" {
		t.Fatal(text)
	}
	m.becomes(r.ID, delivery.Completed)
	for _, h := range said {
		if name, want, _ := strings.Cut(h, ": "); m.letters()[0].Header.Get(name) != want {
			t.Errorf("%s is lost", h)
		}
	}
	if resp, _, text := m.post("/box/x", "x", "X-Click: https://example.com/?token=tell-nobody"); resp.StatusCode != 400 || !strings.Contains(text, "credential") {
		t.Errorf("an address with a credential: %d %s", resp.StatusCode, text)
	}
}
