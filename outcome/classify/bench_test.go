package classify

import (
	"context"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
)

var (
	plain200 = Response{Method: "POST", Status: 200, Now: now, Header: headers(
		"Date: Fri, 20 Nov 2026 12:00:00 GMT", "Content-Type: application/json", "Content-Length: 1024", "Server: x",
		"X-Request-Id: 1", "Cache-Control: no-store", "Vary: Accept-Encoding", "Strict-Transport-Security: max-age=1",
		"X-Content-Type-Options: nosniff", "Via: 1.1 x", "Connection: keep-alive", "Alt-Svc: clear",
	)}
	openAI200 = Response{Method: "POST", Status: 200, Now: now, Header: headers(
		"Date: Fri, 20 Nov 2026 12:00:00 GMT", "Content-Type: application/json",
		"x-ratelimit-limit-requests: 500", "x-ratelimit-remaining-requests: 499", "x-ratelimit-reset-requests: 120ms",
		"x-ratelimit-limit-tokens: 30000", "x-ratelimit-remaining-tokens: 29984", "x-ratelimit-reset-tokens: 6m0s",
	)}
)

func TestPlainSuccessDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(1000, func() { HTTP(plain200) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestReportedLimitsAllocateOnlyThemselves(t *testing.T) {
	if n := testing.AllocsPerRun(1000, func() { HTTP(openAI200) }); n > 2 {
		t.Errorf("got %v allocations for two limits, want 2", n)
	}
}

var sink outcome.Outcome

func bench(b *testing.B, r Response) {
	b.ReportAllocs()
	for b.Loop() {
		sink = HTTP(r)
	}
}

func BenchmarkPlain200(b *testing.B)  { bench(b, plain200) }
func BenchmarkOpenAI200(b *testing.B) { bench(b, openAI200) }

func BenchmarkThrottled429(b *testing.B) {
	bench(b, Response{Status: 429, Header: headers("Retry-After: 3"), Now: now})
}

func BenchmarkGemini429(b *testing.B) {
	bench(b, Response{Status: 429, Body: []byte(geminiDay), Now: now})
}

func BenchmarkS3SlowDown(b *testing.B) {
	bench(b, Response{Method: "GET", Status: 503, Now: now, Body: []byte(
		`<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)})
}

func BenchmarkConnectionRefused(b *testing.B) {
	err := op("dial", syscall.ECONNREFUSED)
	b.ReportAllocs()
	for b.Loop() {
		sink = Error(context.Background(), err)
	}
}
