package observe_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// compareCloud compares the totals published to CloudWatch, as lines, with the events of the script.
func compareCloud(t *testing.T, s *script, lines string) {
	t.Helper()
	got, want := make(map[string]float64), make(map[string]float64)
	for text := range strings.Lines(lines) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l["Upstream"] != nil { // the same values by upstream
			continue
		}
		for _, name := range []string{"APICallCount", "RateLimitErrors", "RetryExhausted", "RateLimiterAcquisitions"} {
			if n, ok := l[name].(float64); ok {
				got[name] += n
			}
		}
	}
	for series, n := range s.seen.series {
		kind, rest, _ := strings.Cut(series, " ")
		switch {
		case kind == "attempts":
			want["APICallCount"] += n
			want["RateLimiterAcquisitions"] += n // every allowed attempt has ended
			if strings.HasSuffix(rest, " throttled") {
				want["RateLimitErrors"] += n
			}
		case strings.HasPrefix(series, "given up ") && !strings.HasSuffix(rest, " canceled") && !strings.HasSuffix(rest, " not_retryable"):
			want["RetryExhausted"] += n
		}
	}
	for name := range merge(got, want) {
		if got[name] != want[name] {
			t.Errorf("CloudWatch: %s is %v, the script saw %v", name, got[name], want[name])
		}
	}
	if shows(lines) || strings.Contains(lines, "wren") {
		t.Errorf("what a caller or an upstream says is published:\n%s", lines)
	}
}
