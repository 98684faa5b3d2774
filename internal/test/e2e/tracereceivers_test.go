package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// failsOnce makes a call whose first attempt fails through a weir with traces, and requires its spans: the call, two attempts
// and the wait between them.
func failsOnce(t *testing.T, r *otlptest.Receiver, traces string, env ...string) {
	t.Helper()
	up := httptest.NewServer(&hearing{answer: func(n int) int { return []int{500, 200}[min(n, 2)-1] }})
	t.Cleanup(up.Close)
	w := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\ntraces: {%s, share: off, each_second: off}\nupstreams: {up: {url: %q, retry: {base: 1ms}}}\n", traces, up.URL), env...)
	resp, err := http.Get("http://" + w.Serve.Listen + "/up/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	all := r.WaitFor(t, 4)
	if len(all) != 4 || otlptest.Text(all[0], "weir.kept") != "failed" || otlptest.Text(all[0], "weir.attempts") != "2" || otlptest.Text(all[0], "weir.id") != resp.Header.Get("X-Correlation-Id") {
		t.Errorf("got %v, want the call, two attempts and the rest between", all)
	}
}

// weir sends its traces to an OTLP receiver over gRPC.
func TestTracesByGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, s := otlptest.New(), grpc.NewServer()
	collector.RegisterTraceServiceServer(s, r)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	failsOnce(t, r, fmt.Sprintf("url: %q", "grpc://"+l.Addr().String()))
}

// weir signs its requests to X-Ray with the credentials of its environment.
func TestTracesToXRay(t *testing.T) {
	r := otlptest.New()
	v := sigtest.Verifier{Secrets: map[string]string{"AKID": "SECRET"}}
	var mu sync.Mutex
	var signed []sigtest.Signed
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got, err := v.Verify(q)
		mu.Lock()
		signed = append(signed, got)
		mu.Unlock()
		if err != nil {
			t.Errorf("the signature: %v", err)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(got.Body))
		r.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	failsOnce(t, r, fmt.Sprintf("url: %q, region: eu-west-1, xray: true", s.URL), "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_SESSION_TOKEN=TOKEN")
	mu.Lock()
	defer mu.Unlock()
	for _, got := range signed {
		if got.Service != "xray" || got.Region != "eu-west-1" || got.Token != "TOKEN" {
			t.Errorf("signed as %+v, want xray in eu-west-1", got)
		}
	}
}
