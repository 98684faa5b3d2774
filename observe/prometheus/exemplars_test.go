package weirprom

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// openMetrics returns a scrape in the OpenMetrics format, which Prometheus requests.
func openMetrics(t *testing.T, reg prometheus.Gatherer) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	if kind := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Fatalf("%d, %s: %s", w.Code, kind, w.Body)
	}
	return w.Body.String()
}

// A call whose trace is kept appears in the bucket that counted it, of its upstream and result only.
func TestExemplarsAreOfKeptTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := New(reg)
		u := newUpstream(t, "s3", weir.Policy{}, weir.Options{Events: m.Events()})
		for _, took := range []time.Duration{3 * time.Millisecond, 40 * time.Millisecond, 2 * time.Hour} {
			run := u.Begin(t.Context(), weir.Call{})
			for run.Next() {
				time.Sleep(took)
				run.Report(outcome.Outcome{}, nil)
			}
		}
		at := time.Unix(1700000000, 0)
		m.Exemplar(Exemplar{"s3", "unknown", "aa01", 39 * time.Millisecond, at})
		m.Exemplar(Exemplar{"s3", "unknown", "aa02", 40 * time.Millisecond, at})
		m.Exemplar(Exemplar{"s3", "unknown", "aa03", 2 * time.Hour, at})
		m.Exemplar(Exemplar{"s3", "failed", "aa04", 40 * time.Millisecond, at}) // no such series exists
		m.Exemplar(Exemplar{"s4", "unknown", "aa05", 40 * time.Millisecond, at})
		said := openMetrics(t, reg)
		for _, want := range []string{
			`weir_call_duration_seconds_bucket{result="unknown",upstream="s3",le="0.05"} 2 # {trace_id="aa02"} 0.04 1.7e+09`,
			`weir_call_duration_seconds_bucket{result="unknown",upstream="s3",le="+Inf"} 3 # {trace_id="aa03"} 7200.0 1.7e+09`,
		} {
			if !strings.Contains(said, want+"\n") {
				t.Errorf("there is no %s in\n%s", want, said)
			}
		}
		if n := strings.Count(said, "trace_id"); n != 2 || strings.Contains(strings.Join(text(t, reg), "\n"), "trace_id") {
			t.Errorf("there are %d exemplars, want 2, and none as text", n)
		}
		m.Forget("s3")
		again := newUpstream(t, "s3", weir.Policy{}, weir.Options{Events: m.Events()})
		run := again.Begin(t.Context(), weir.Call{})
		for run.Next() {
			time.Sleep(40 * time.Millisecond)
			run.Report(outcome.Outcome{}, nil)
		}
		if said := openMetrics(t, reg); strings.Contains(said, "trace_id") {
			t.Errorf("what was forgotten is shown:\n%s", said)
		}
	})
}

// OpenMetrics ends every counter name with _total and would append it. Names must be equal in both formats.
func TestNamesAreTheSameInOpenMetrics(t *testing.T) {
	_, reg := everything(t)
	names := regexp.MustCompile(`(?m)^\w+`)
	said, as := map[string]bool{}, map[string]bool{}
	for _, name := range names.FindAllString(openMetrics(t, reg), -1) {
		said[name] = true
	}
	for _, name := range names.FindAllString(strings.Join(text(t, reg), "\n"), -1) {
		if as[name] = true; !said[name] {
			t.Errorf("%s has another name in OpenMetrics", name)
		}
	}
	if len(said) != len(as) || len(as) < 30 {
		t.Errorf("%d names in OpenMetrics, %d as text", len(said), len(as))
	}
}
