package serve

import (
	"net/http"
	"testing"
)

// A delivery is charged to its caller once, when it is stored. Refused and repeated requests are not charged.
func TestDeliveriesAreChargedToTheirCallers(t *testing.T) {
	m := newMailbox(t, "true", "    callers: true\n", "callers: {limits: {global: off, user-day: off, user: {rate: 2/h, burst: 2, scope: user}}}")
	for i, c := range []struct {
		user, key, before string
		status            int
	}{
		{"ann", "1", "", 202},
		{"ann", "1", "", 200},
		{"ann", "2", "not a time", 400}, // costs nothing
		{"ann", "3", "not a time", 400},
		{"ann", "4", "", 202},
		{"ann", "5", "", 429},
		{"bob", "6", "", 202},
	} {
		headers := []string{"Prefer: respond-async, wait=5", "X-User: " + c.user, "Idempotency-Key: " + c.key}
		if c.before != "" {
			headers = append(headers, "Weir-Deliver-Before: "+c.before)
		}
		resp, _, text := m.post("/box/x", "hello", headers...)
		if got := resp.StatusCode; got != c.status && (got != http.StatusOK || c.status != http.StatusAccepted) {
			t.Errorf("%d: %d %s, want %d", i, got, text, c.status)
		}
	}
}
