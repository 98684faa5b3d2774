package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"

	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/observe/trace/otlp"
)

// everything is a file with all features that have metrics: traces, decisions, deliveries, models and a store.
const everything = `{listen: "127.0.0.1:0", admin: "127.0.0.1:0", traces: {url: %[1]q, share: 100%%, service: orders, attributes: {a: b}}, metrics: {%[2]s},
	decide: {listen: "127.0.0.1:0", grpc: "127.0.0.1:0", rules: rules.yaml}, deliveries: {file: letters}, store: {file: store},
	harmless: [agent],
	upstreams: {up: {url: %[3]q, keys: {agent: "header:User-Agent"}, limits: {agents: {rate: 100/h, scope: agent, labels: true}, all: 100/h burst 3, day: {amount: 50, every: day}}, max_wait: 1ms, retry: {base: 1ms}, routes: [{path: /up/, strip: true}, {path: /later/, strip: true, deliver: true}]},
		chat: {url: %[3]q, llm: {family: openai, cascade: {tiers: [{model: gpt-4o}, {message: "Sorry."}]}}}}}`

func startEverything(t *testing.T, fields string) (*sidecar, *otlptest.Receiver) {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "bad") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(up.Close)
	r, to := otlptest.Receive(t)
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, "rules.yaml", edge)
	put(t, "weir.yaml", fmt.Sprintf(everything, to, fields, up.URL))
	s := startFile(t, filepath.Join(dir, "weir.yaml"))
	for _, path := range []string{"/up/a", "/up/bad", "/up/c", "/up/d", "/later/x", "/chat/v1/chat/completions"} {
		resp, err := http.Post("http://"+s.address()+path, "application/json", strings.NewReader(`{"model":"gpt-4o","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	return s, r
}

// Every series of a weir with all features is exported by OTLP with the same value, over both protocols.
func TestEverySeriesIsToldByOTLP(t *testing.T) {
	s, r := startEverything(t, "url: \"http://127.0.0.1:1\"")
	r.WaitFor(t, 3) // there are exemplars
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byHTTP, byGRPC := otlptest.NewMetrics(), otlptest.NewMetrics()
	h := httptest.NewServer(byHTTP)
	t.Cleanup(h.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	collector.RegisterMetricsServiceServer(g, byGRPC)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	want := otlptest.Gathered(families)
	seen := fmt.Sprint(want)
	for _, name := range []string{"weir_calls_total", "weir_call_duration_seconds_bucket", "weir_call_duration_seconds_exemplar", "weir_traces_total", "weir_metric_exports_total", "weir_deliver", "weir_fleet", "weir_llm", "weir_limit_key_units_remaining", "weir_limit_key_used_ratio", "go_memstats_alloc_bytes_total", "process_cpu_seconds_total"} {
		if !strings.Contains(seen, name) {
			t.Errorf("there is no %s among what is gathered", name)
		}
	}
	overHTTP, err := otlp.MetricsHTTP(otlp.HTTP{URL: h.URL + "/v1/metrics"})
	if err != nil {
		t.Fatal(err)
	}
	overGRPC, err := otlp.MetricsGRPC(otlp.GRPC{Target: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	for to, got := range map[otlp.Sender]*otlptest.Metrics{overHTTP: byHTTP, overGRPC: byGRPC} {
		m := otlp.NewMeter(otlp.Metrics{Gather: func() ([]*dto.MetricFamily, error) { return families, nil }, To: to})
		m.Close(t.Context())
		all, err := otlptest.Series(got.Requests())
		if diff := otlptest.Differ(all, want); err != nil || diff != "" || len(want) < 500 {
			t.Errorf("%d series: %v\n%s", len(want), err, diff)
		}
	}
}

// weir sends its metrics as configured, with the resource of its traces, and once more at the end, while their sources
// still exist.
func TestMetricsAreSentAndALastTimeAtTheEnd(t *testing.T) {
	m := otlptest.NewMetrics()
	h := httptest.NewServer(m)
	t.Cleanup(h.Close)
	s, _ := startEverything(t, fmt.Sprintf("every: 1s, url: %q", h.URL))
	m.WaitFor(t, 2)
	resp, err := http.Get("http://" + s.address() + "/up/last")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	s.stop <- os.Interrupt
	s.ended(t)
	all := m.Requests()
	last := all[len(all)-1]
	got, err := otlptest.Series([]*collector.ExportMetricsServiceRequest{last})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0.0
	for name, v := range got {
		if strings.HasPrefix(name, "weir_calls_total{") && strings.Contains(name, "upstream=up") {
			calls += v
		}
	}
	if calls < 5 {
		t.Errorf("%v calls were told of at the end, want those of the last second, too", calls)
	}
	for len(s.log) > 0 {
		if line := <-s.log; strings.Contains(line, "metrics not gathered") {
			t.Error(line)
		}
	}
	of := make(map[string]string)
	for _, a := range last.ResourceMetrics[0].Resource.Attributes {
		of[a.Key] = a.Value.GetStringValue()
	}
	if of["service.name"] != "orders" || of["a"] != "b" || of["service.instance.id"] != process() {
		t.Errorf("the resource is %v, want that of the traces", of)
	}
}
