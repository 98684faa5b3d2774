package status

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

func TestTheStatusSaysHowRetriesFared(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := retriesOf(weir.RetryView{
		Made: 4, Succeeded: 3, Mean: 70 * time.Millisecond, P99: 120 * time.Millisecond, Breaks: 2,
		Last: weir.ErrorView{Operation: "put", Class: outcome.Failed, Code: "503\x1b" + strings.Repeat("x", 100), Ago: 5 * time.Second},
	}, now)
	got, err := json.Marshal(r)
	const want = `{"made":4,"succeeded":3,"success_rate":0.75,"mean_ms":70,"p99_ms":120,"breaks":2,` +
		`"last_error":{"at":"2026-01-02T03:04:00Z","operation":"put","class":"failed","code":"503\u001b`
	if err != nil || !strings.HasPrefix(string(got), want) || len(r.Last.Code) != longestCode {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	var out bytes.Buffer
	r.print(&out)
	for _, says := range []string{"retries: 4, 75.0% succeeded; mean latency 70 ms, p99 120 ms", "breaker openings: 2", `last error: failed "503\x1bx`, "in put at 2026-01-02T03:04:00Z"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("printed %q, want %q", out.String(), says)
		}
	}
	if r := retriesOf(weir.RetryView{Last: weir.ErrorView{Class: outcome.OK}}, now); r != nil {
		t.Errorf("of nothing: %+v", r)
	}
}
