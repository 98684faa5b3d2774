package serve

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/otlptest"
)

// joining is a mailbox with decisions, deliveries and traces.
type joining struct {
	*mailbox
	*otlptest.Receiver
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	callers      = "00-" + callersTrace + "-" + callersSpan + "-01"
	callersXRay  = "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" + callersSpan + ";Sampled=1"
)

// edge contains rules for Envoy that permit one request of each tenant.
const edge = "domain: edge\ndescriptors: [{key: tenant, rate_limit: {unit: year, requests_per_unit: 1}}]\n"

func startJoining(t *testing.T, kept string) *joining {
	t.Helper()
	r, to := otlptest.Receive(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	put(t, rules, edge)
	more := fmt.Sprintf("traces: {url: %q, xray: true, %s}\ndecide: {listen: 127.0.0.1:0, grpc: 127.0.0.1:0, rules: %q}", to, kept, rules)
	return &joining{newMailbox(t, "true", "    limits: {all: 100/h burst 100}", more), r}
}

func (j *joining) decide(what, body string, headers ...string) (int, string) {
	j.Helper()
	resp, _, text := j.sendTo("http://"+j.run.decider.front.Addr().String(), "POST", "/v1/"+what, body, append(headers, "Content-Type: application/json")...)
	return resp.StatusCode, text
}

// envoys sends a request as Envoy does, with a trace in the metadata.
func (j *joining) envoys(tenant string, fields ...string) rls.RateLimitResponse_Code {
	j.Helper()
	conn, err := grpc.NewClient(j.run.decider.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		j.Fatal(err)
	}
	defer conn.Close()
	resp, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(metadata.AppendToOutgoingContext(j.Context(), fields...), &rls.RateLimitRequest{
		Domain: "edge", Descriptors: []*descriptors.RateLimitDescriptor{{Entries: []*descriptors.RateLimitDescriptor_Entry{{Key: "tenant", Value: tenant}}}},
	})
	if err != nil {
		j.Fatal(err)
	}
	return resp.GetOverallCode()
}

// called waits for n spans with a name and returns them.
func (j *joining) called(name string, n int) []*spans.Span {
	j.Helper()
	for had := 0; ; {
		all := j.WaitFor(j.T, had+1)
		had = len(all)
		if all = slices.DeleteFunc(slices.Clone(all), func(s *spans.Span) bool { return s.Name != name }); len(all) >= n {
			return all
		}
	}
}

func (j *joining) within(s *spans.Span, trace, parent string) {
	j.Helper()
	if hex.EncodeToString(s.TraceId) != trace || hex.EncodeToString(s.ParentSpanId) != parent {
		j.Errorf("%s: in trace %x under %x, want it in %s under %s", s.Name, s.TraceId, s.ParentSpanId, trace, parent)
	}
}

// A decision is a span in its caller's trace, from acquire to report. A request of Envoy is one as well.
func TestDecisionsJoinTheTraceOfWhoAsks(t *testing.T) {
	j := startJoining(t, "share: 100%")
	for _, h := range []string{"Traceparent: " + callers, "X-Amzn-Trace-Id: " + callersXRay} {
		_, text := j.decide("acquire", `{"upstream":"box","id":"`+h[:4]+`"}`, h)
		var p struct{ Permit string }
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Permit == "" {
			t.Fatal(text, err)
		}
		if status, text := j.decide("report", `{"permit":"`+p.Permit+`","outcome":"ok"}`); status != http.StatusOK {
			t.Fatal(text)
		}
	}
	for _, s := range j.called("decide box", 2) {
		j.within(s, callersTrace, callersSpan)
		if s.Kind != spans.Span_SPAN_KIND_SERVER || otlptest.Text(s, "weir.class") != "ok" || otlptest.Text(s, "weir.upstream") != "box" || otlptest.Text(s, "http.request.method") != "" {
			t.Errorf("got %v", s)
		}
		for _, a := range j.called("box default", 2) {
			if hex.EncodeToString(a.TraceId) != callersTrace {
				t.Errorf("the attempt is in another trace: %v", a)
			}
		}
	}
	j.envoys("a", "traceparent", callers)
	j.envoys("b", "x-amzn-trace-id", callersXRay)
	for _, s := range j.called("envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", 2) {
		j.within(s, callersTrace, callersSpan)
		if otlptest.Text(s, "rpc.response.status_code") != "OK" || otlptest.Text(s, "weir.kept") != "sampled" {
			t.Errorf("got %v", s)
		}
	}
	for _, s := range j.called("store", 2) {
		if hex.EncodeToString(s.TraceId) != callersTrace {
			t.Errorf("the store's answer is in another trace: %v", s)
		}
	}
}

// A caller's sampled flag does not cause a trace to be kept. Refused and failed decisions are kept in the caller's
// trace.
func TestDecisionsAreKeptForHowTheyEnd(t *testing.T) {
	j := startJoining(t, "share: off, each_second: off")
	if status, text := j.decide("acquire", `{"upstream":"box","cost":{"requests":100}}`, "Traceparent: "+callers); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if status, text := j.decide("acquire", `{"upstream":"box","id":"last"}`, "Traceparent: "+callers); status != http.StatusTooManyRequests {
		t.Fatal(status, text)
	}
	if a, b := j.envoys("a", "traceparent", callers), j.envoys("a", "traceparent", callers); a != rls.RateLimitResponse_OK || b != rls.RateLimitResponse_OVER_LIMIT {
		t.Fatal(a, b)
	}
	refused := j.called("decide box", 1)
	over := j.called("envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", 1)
	if len(refused) != 1 || len(over) != 1 {
		t.Fatalf("%d and %d spans came, want one of each", len(refused), len(over))
	}
	for i, s := range []*spans.Span{refused[0], over[0]} {
		j.within(s, callersTrace, callersSpan)
		if otlptest.Text(s, "weir.kept") != "refused" || otlptest.Text(s, "weir.sampled") != "late" || otlptest.Text(s, "weir.limit") != []string{"all", "edge.tenant"}[i] {
			t.Errorf("got %v", s)
		}
	}
}

// Each attempt of a delivery continues the trace in which the delivery was submitted, however long ago.
func TestDeliveriesJoinTheTraceTheyWereHandedInWith(t *testing.T) {
	j := startJoining(t, "share: 100%")
	j.answers(400)
	for k, c := range []struct{ header, trace, parent string }{{"Traceparent: " + callers, callersTrace, callersSpan}, {"X-Amzn-Trace-Id: " + callersXRay, callersTrace, callersSpan}, {"X-None: 1", "", ""}} {
		resp, r, text := j.post("/box/x", "letter", async, c.header)
		if resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode, text)
		}
		of := func(name string, n int) (all []*spans.Span) {
			for had := n; len(all) < n; had++ {
				all = slices.DeleteFunc(slices.Clone(j.called(name, had)), func(s *spans.Span) bool { return otlptest.Text(s, "weir.delivery") != r.ID })
			}
			return all
		}
		accepted := of("POST box", 1)[0]
		if c.trace == "" {
			c.trace, c.parent = hex.EncodeToString(accepted.TraceId), hex.EncodeToString(accepted.SpanId)
		} else {
			j.within(accepted, c.trace, c.parent)
		}
		of("deliver POST box", 1)
		j.answers(200)
		for n := 0; n == 0; { // the failure may not be recorded yet
			var err error
			if n, err = j.run.deliveries.worker.Redrive(t.Context(), delivery.Filter{Upstream: "box", Status: delivery.Failed}, 1); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range of("deliver POST box", 2) {
			j.within(s, c.trace, c.parent)
			if s.Kind != spans.Span_SPAN_KIND_CONSUMER || otlptest.Text(s, "http.response.status_code") != []string{"400", "200"}[i] || otlptest.Text(s, "weir.delivery_starts") != []string{"0", "1"}[i] {
				t.Errorf("attempt %d: got %v", i+1, s)
			}
			if heard := j.letters()[2*k+i].Header.Get("Traceparent"); !strings.HasPrefix(heard, "00-"+c.trace+"-") || heard[36:52] == c.parent {
				t.Errorf("attempt %d: the upstream heard %q, want the trace %s, and the attempt", i+1, heard, c.trace)
			}
		}
		j.answers(400)
	}
}
