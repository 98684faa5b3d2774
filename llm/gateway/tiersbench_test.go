package gateway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// BenchmarkTiers measures weir's time for an answer of a tier without a model: a cached answer, a static answer and a
// message. Each uses one connection, and alternates with a server that only responds with status 200.
func BenchmarkTiers(b *testing.B) {
	down := serve(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	p := asPreset()
	p.Breaker.Open, p.Retry.Base = time.Hour, time.Millisecond
	written := []byte("answers:\n  - {id: returns, questions: [\"How do I return an item?\"], answer: {en: Within 30 days.}}\n")
	for i := range 1000 {
		written = fmt.Appendf(written, "  - {id: n%d, questions: [\"What does article %d cost to send?\"], answer: {en: Little.}}\n", i, i)
	}
	book := new(answers.Book)
	if err := book.Parse("answers.yaml", written); err != nil {
		b.Fatal(err)
	}
	behind := func(t gateway.Tier) *wire {
		var o gateway.Options
		o.Cascade, o.Tiers = tiers(b, t)
		return dial(b, serve(b, sidecar(b, down, p, o)))
	}
	names := []string{"bare", "cached", "static", "message"}
	wires := []*wire{
		dial(b, serve(b, trivial)),
		dial(b, serve(b, sidecar(b, serve(b, trivial), asPreset(), gateway.Options{Cache: newCache(b, cache.Options{})}))),
		behind(gateway.Tier{Answers: book}),
		behind(gateway.Tier{Messages: []string{"We are sorry."}}),
	}
	const body = `{"model":"gpt-4o","temperature":0,"max_tokens":300,"messages":[{"role":"user","content":"How do I return an item?"}]}`
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", completions, len(body), body)
	took := make([][]time.Duration, len(wires))
	for _, w := range wires {
		for range 10 { // opens the breaker and fills the cache
			if err := w.call(request); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		for i, w := range wires {
			begun := time.Now()
			if err := w.call(request); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	for i, name := range names {
		b.ReportMetric(median(took[i]), name+"-p50-us")
		b.ReportMetric(quantile(took[i], 99), name+"-p99-us")
	}
}
