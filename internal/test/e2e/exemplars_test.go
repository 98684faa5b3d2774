package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/internal/test/served"
)

// An exemplar of the duration metric leads to the trace of a recorded call. A call without a trace has no exemplar.
func TestMetricsLeadToKeptTraces(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	_, url := otlptest.Receive(t)
	i := served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntraces: {url: %q, share: off, each_second: off}\nupstreams: {up: {url: %q, retry: {attempts: 1}}}\n", url, s.URL))
	for _, path := range []string{"/up/good", "/up/bad"} {
		q, _ := http.NewRequest(http.MethodGet, "http://"+i.Addr()+path, nil)
		q.Header.Set("Traceparent", "00-"+theTrace+"-"+theSpan+"-00")
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	q, _ := http.NewRequest(http.MethodGet, "http://"+i.AdminAddr()+"/metrics", nil)
	q.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	said := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(said, "trace_id") && time.Now().Before(end); { // a request ends after its response
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		said = string(b)
	}
	var with []string
	for line := range strings.Lines(said) {
		if strings.Contains(line, "trace_id") {
			with = append(with, line)
		}
	}
	if len(with) != 1 || !strings.HasPrefix(with[0], `weir_call_duration_seconds_bucket{result="failed",upstream="up",`) || !strings.Contains(with[0], `# {trace_id="`+theTrace+`"} `) {
		t.Errorf("got %q, want one exemplar, of the call that failed", with)
	}
}
