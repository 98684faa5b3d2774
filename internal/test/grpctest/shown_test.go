package grpctest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Calls of every kind pass with TLS on both sides.
func TestEveryKindOfCallEncrypted(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servers.WriteCertificate(t, cert, key, -time.Hour, time.Hour)
	t.Setenv("SSL_CERT_FILE", cert) // no other code in this process reads it
	own, err := credentials.NewServerTLSFromFile(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := credentials.NewClientTLSFromFile(cert, "")
	if err != nil {
		t.Fatal(err)
	}
	s := new(service)
	_, at := serve(t, s, grpc.Creds(own))
	w := served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntls: {cert: %q, key: %q}\nupstreams:\n  echo:\n    url: https://%s\n    grpc: true\n", cert, key, at))
	conn, err := grpc.NewClient(w.Serve.Listen, grpc.WithTransportCredentials(trust))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	everyKind(t, s, conn)
}

// shown waits until a page of the admin listener contains the texts, and returns it.
func shown(t *testing.T, w *served.Inside, path string, wants ...string) {
	t.Helper()
	var page string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.Serve.Admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/plain")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		page = string(b)
		missing := false
		for _, want := range wants {
			missing = missing || !strings.Contains(page, want)
		}
		if !missing {
			return
		}
	}
	var lines []string
	for l := range strings.Lines(page) {
		if strings.Contains(l, "echo") || path != "/metrics" {
			lines = append(lines, l)
		}
	}
	t.Errorf("%s has not all of %q:\n%s", path, wants, strings.Join(lines, ""))
}

// Metrics count calls by status, and why explains them.
func TestCallsAreCountedAndExplained(t *testing.T) {
	s := &service{unary: echoes}
	_, at := serve(t, s)
	w := before(t, at, "limits: {all: {rate: 1/min, burst: 3}}\nmax_wait: off\nretry: off")
	conn, ctx := dial(t, w.Serve.Listen, grpc.WithDisableRetry()), within(t)
	id := func(m metadata.MD) string { return strings.Join(m.Get("x-correlation-id"), "") }
	if _, err := ask(ctx, conn, "well"); err != nil {
		t.Fatal(err)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.InvalidArgument} {
		s.unary = func(_ context.Context, in *text) (*text, error) { return nil, status.Error(code, "no") }
		var head, trailer metadata.MD
		_, err := ask(ctx, conn, "badly", grpc.Header(&head), grpc.Trailer(&trailer))
		if status.Code(err) != code {
			t.Fatalf("%v, want %v", err, code)
		}
		shown(t, w, "/v1/why/"+id(metadata.Join(head, trailer)), "echo", map[codes.Code]string{codes.Unavailable: "failed (UNAVAILABLE)", codes.InvalidArgument: "rejected (INVALID_ARGUMENT)"}[code])
	}
	var head, trailer metadata.MD
	_, err := ask(ctx, conn, "too many", grpc.Header(&head), grpc.Trailer(&trailer))
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	shown(t, w, "/v1/why/"+id(metadata.Join(head, trailer)), "refused by weir: rate_limited", "limit all", w.File)
	shown(t, w, "/metrics",
		`weir_attempts_total{class="ok",operation="default",upstream="echo"} 1`,
		`weir_attempts_total{class="failed",operation="default",upstream="echo"} 1`,
		`weir_attempts_total{class="rejected",operation="default",upstream="echo"} 1`,
		`decision="rate_limited"`)
}
