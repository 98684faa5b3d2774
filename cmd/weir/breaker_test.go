package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// weir breaker does the same as POST /v1/breaker, and prints the resulting state.
func TestBreakerCommandsChangeTheBreaker(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	s := start(t, upstream.URL, "")
	for _, c := range []struct {
		args string
		says string
		code int
	}{
		{"breaker open up --for 5m", "open (forced)", http.StatusServiceUnavailable},
		{"breaker close up", "closed (forced)", http.StatusOK},
		{"breaker open -for 1h up", "open (forced)", http.StatusServiceUnavailable},
		{"breaker reset up", "closed", http.StatusOK},
	} {
		out, complaint, err := s.order(t, strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, c.says) || !strings.Contains(out, "BREAKER") {
			t.Errorf("weir %s: %v, %s%s, want %q", c.args, err, out, complaint, c.says)
		}
		if code := s.code(t); code != c.code {
			t.Errorf("after weir %s calls get %d, want %d", c.args, code, c.code)
		}
	}
	out, _, err := s.order(t, "breaker", "reset", "up", "--json")
	var u status.Upstream
	if err != nil || json.Unmarshal([]byte(out), &u) != nil || u.Name != "up" || len(u.Breakers) != 1 || u.Breakers[0].Forced {
		t.Errorf("%v, %s", err, out)
	}
	for args, says := range map[string]string{
		"breaker open down":                "unknown upstream",
		"breaker open up --for -5s":        `for "-5s": want a duration`,
		"breaker close up --for 5m":        "unknown flag --for",
		"breaker reset":                    "UPSTREAM is missing",
		"breaker open up --breaker-key pt": "",
	} {
		out, complaint, err := s.order(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(complaint+err.Error(), says) || out != "" {
			t.Errorf("weir %s: %v, %s%s, want %q", args, err, complaint, out, says)
		}
	}
}
