package serve

import (
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// Text in a quoted string of Prefer is not a preference. The response reports the applied preferences.
func TestPreferencesAreRead(t *testing.T) {
	m := newMailbox(t, "true", "", "")
	for prefer, later := range map[string]bool{
		`foo="a, respond-async, b"`:                      false,
		`foo="a; \", respond-async"`:                     false,
		`foo="open, respond-async`:                       false,
		`respond-async`:                                  true,
		`foo="a, b\", c;d";x="," , respond-async; y=","`: true,
		`wait=1 , Respond-Async`:                         true,
	} {
		resp, r, text := m.post("/box/x", "x", "Prefer: "+prefer)
		if (r.ID != "") != later {
			t.Errorf("%s: %d %s, want it delivered later: %v", prefer, resp.StatusCode, text, later)
		}
	}
	m = newMailbox(t, "always", "", "")
	for prefer, want := range map[string]string{"wait=30": "wait=30", "wait=30, respond-async": "respond-async, wait=30", "wait=0": "", "respond-async": "respond-async"} {
		resp, r, text := m.post("/box/x", "x", "Prefer: "+prefer)
		if got := resp.Header.Get("Preference-Applied"); got != want {
			t.Errorf("%s: applied %q, want %q: %s", prefer, got, want, text)
		}
		m.becomes(r.ID, delivery.Completed)
	}
}
