package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A wire is one connection to a server over which requests are sent as bytes. Its own cost is negligible, so the
// benchmark measures the server.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(b testing.TB, at string) *wire {
	b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &wire{conn, bufio.NewReaderSize(conn, 16<<10)}
}

// call sends a request and reads the response, whose length must be known.
func (w *wire) call(request []byte) error {
	if err := w.ask(request); err != nil {
		return err
	}
	length := -1
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("the answer does not say how long it is")
	}
	_, err := w.in.Discard(length)
	return err
}

// ask sends a request and reads the status line of the response.
func (w *wire) ask(request []byte) error {
	if _, err := w.conn.Write(request); err != nil {
		return err
	}
	line, err := w.in.ReadSlice('\n')
	if err == nil && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		err = fmt.Errorf("the answer is %s", bytes.TrimSpace(line))
	}
	return err
}

// question returns an OpenAI request with a body of the given size. Each seed gives another question, with some words
// that no other question has.
func question(path string, size int, seed uint64) []byte {
	const head = `{"model":"gpt-4o","temperature":0,"max_tokens":300,"messages":[{"role":"system","content":"You answer briefly."},{"role":"user","content":"`
	const tail = `"}]}`
	random := rand.New(rand.NewPCG(seed, 1))
	body := []byte(head)
	for len(body) < size {
		for range 1 + random.IntN(4) {
			body = append(body, "bcdfghklmnprst"[random.IntN(14)], "aeiou"[random.IntN(5)])
		}
		body = append(body, " .,"[min(random.IntN(20), 2)], ' ')
	}
	body = append(body[:size-len(tail)], tail...)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\nUser-Agent: OpenAI/JS 6\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// reply is a response of 1 KiB with usage.
var reply = func() []byte {
	const head = `{"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"`
	const tail = `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":890,"completion_tokens":120,"total_tokens":1010}}`
	return []byte(head + strings.Repeat("word ", 300)[:1024-len(head)-len(tail)] + tail)
}()

// trivial is an upstream that responds immediately.
var trivial = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = w.Write(reply)
})

func serve(b testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return s.URL
}

// bare returns a tuned reverse proxy without other functions.
func bare(b testing.TB, upstream string) string {
	at, _ := url.Parse(upstream)
	return serve(b, reverse(at))
}

func reverse(at *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(at) },
		Transport:     httpx.NewBase(weir.Timeouts{}, 256),
		FlushInterval: -1,
		BufferPool:    new(lender),
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// bareStreams returns a reverse proxy that does not cut streams whose response starts just before the request's end.
// Without this, a reverse proxy sometimes does.
func bareStreams(b testing.TB, upstream string) string {
	at, _ := url.Parse(upstream)
	p := reverse(at)
	return serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	}))
}

type lender struct{ pool sync.Pool }

func (l *lender) Get() []byte {
	if p, ok := l.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (l *lender) Put(p []byte) { l.pool.Put(&p) }

// asPreset returns the policy of the preset openai with limits that are never reached.
func asPreset() weir.Policy {
	const plenty = 1 << 40
	p := weir.Policy{Undeclared: true, MaxWait: 30 * time.Second}
	p.Limits = []limit.Limit{
		{Name: "rpm", Scope: gateway.Pool, Rate: bucket.Rate{Amount: plenty, Per: time.Minute, Burst: plenty}},
		{Name: "tpm", Scope: gateway.Pool, Unit: "tokens", Rate: bucket.Rate{Amount: plenty, Per: time.Minute, Burst: plenty}},
	}
	p.Breaker.Consecutive, p.Breaker.Successes, p.Breaker.Open = 5, 1, 10*time.Second
	p.Retry.Attempts, p.Retry.Base, p.Retry.Cap = 3, 500*time.Millisecond, 20*time.Second
	return p
}

// sidecar returns a sidecar in front of an upstream, with everything that it does for each call.
func sidecar(b testing.TB, upstream string, p weir.Policy, o gateway.Options) *proxy.Proxy {
	b.Helper()
	at, _ := url.Parse(upstream)
	o.Name = "chat"
	o.Tokens, o.Prices = new(tokens.Estimator), price.BuiltIn()
	d, err := gateway.New(o)
	if err != nil {
		b.Fatal(err)
	}
	made, err := proxy.New([]proxy.Upstream{{Name: "chat", URL: at, Routes: []proxy.Route{{}}, Policy: p, Dialect: d}}, weir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return made
}

func median(all []time.Duration) float64 { return quantile(all, 50) }

// quantile returns a percentile in microseconds.
func quantile(all []time.Duration, percent int) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)*percent/100, len(all)-1)].Nanoseconds()) / 1e3
}

// BenchmarkPassThrough measures a chat call of 4 KiB with a response of 1 KiB over one connection. It alternates between
// a bare reverse proxy and the sidecar. The main result is added-p50-us: the time that reading, estimating, reserving,
// settling, pricing and recording add to a call. In "new words" the text always exceeds the estimator's cache. In "known
// words" the estimator has seen the texts before.
func BenchmarkPassThrough(b *testing.B) {
	upstream := serve(b, trivial)
	for _, c := range []struct {
		name      string
		questions int
		dressed   bool
	}{
		{"known words", 8, false},
		{"new words", 64, false},
		{"with a cascade and a cache", 64, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			requests := make([][]byte, c.questions)
			for i := range requests {
				requests[i] = question(completions, 4096, uint64(i))
			}
			o := gateway.Options{Ledger: price.NewLedger(10)}
			if c.dressed {
				o.Cascade, o.Tiers = tiers(b, gateway.Tier{Messages: []string{"We are sorry."}})
				o.Cache = newCache(b, cache.Options{TTL: time.Nanosecond, StaleWhileRevalidate: -1, StaleIfError: -1})
			}
			ways := []*wire{dial(b, bare(b, upstream)), dial(b, serve(b, sidecar(b, upstream, asPreset(), o)))}
			took := make([][]time.Duration, len(ways))
			n := 0
			for ; b.Loop(); n++ {
				for i, w := range ways {
					begun := time.Now()
					if err := w.call(requests[n%len(requests)]); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(begun))
				}
			}
			var booked int64
			for _, t := range o.Ledger.All() {
				booked += t.Calls
			}
			if booked < int64(n)-1 { // the last call may be settled shortly after its response was read
				b.Errorf("%d of %d calls were settled", booked, n)
			}
			b.ReportMetric(median(took[0]), "bare-p50-us")
			b.ReportMetric(median(took[1]), "weir-p50-us")
			b.ReportMetric(median(took[1])-median(took[0]), "added-p50-us")
		})
	}
}

// spoken is a model that writes a word every 20 ms.
var spoken = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	say := func(event string) {
		_, _ = io.WriteString(w, "data: "+event+"\n\n")
		_ = flush.Flush()
	}
	const chunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"delta":`
	say(chunk + `{"role":"assistant","content":""},"finish_reason":null}]}`)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		<-tick.C
		say(chunk + `{"content":"word "},"finish_reason":null}]}`)
	}
	say(chunk + `{},"finish_reason":"stop"}]}`)
	say(`{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-4o","choices":[],"usage":{"prompt_tokens":890,"completion_tokens":10,"total_tokens":900}}`)
	say("[DONE]")
})

// listen requests a stream, reads it to the end, and returns the time until the first content.
func (w *wire) listen(request []byte) (first time.Duration, err error) {
	begun := time.Now()
	if _, err := w.conn.Write(request); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	done := false
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && done:
			return first, nil
		case err != nil:
			return 0, fmt.Errorf("a stream of status %d: %w", resp.StatusCode, err)
		case first == 0 && bytes.Contains(line, []byte(`"content":"word`)):
			first = time.Since(begun)
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			done = true
		}
	}
}

// BenchmarkFirstContent measures the time from a request to the first content of its stream while 100 streams are
// running, each with a word every 20 ms. It alternates between the upstream, a bare reverse proxy and the sidecar, in
// turns of 500 streams. The main result is added-p99-us, the median of all turns. The median excludes turns disturbed by
// other work on the machine.
func BenchmarkFirstContent(b *testing.B) {
	const streams, turn = 100, 500
	upstream := serve(b, spoken)
	at := []string{upstream, bareStreams(b, upstream), serve(b, sidecar(b, upstream, asPreset(), gateway.Options{}))}
	request := question(completions, 4096, 1)
	request = bytes.Replace(request, []byte(`"max_tokens":300,`), []byte(`"stream": true  ,`), 1)
	ways := make([][]*wire, len(at))
	for i := range at {
		for range streams {
			ways[i] = append(ways[i], dial(b, at[i]))
		}
	}
	for i := range ways { // open connections and fill the estimator's cache
		talk(b, ways[i], request, streams)
	}
	all := make(map[string][]float64)
	b.ResetTimer()
	for done := 0; done < b.N; done += turn {
		var took [3][]time.Duration
		for i := range ways {
			took[i] = talk(b, ways[i], request, min(turn, b.N-done))
		}
		for _, q := range []int{50, 99} {
			direct := quantile(took[0], q)
			for i, name := range []string{"direct", "added-by-bare", "added"} {
				unit := fmt.Sprintf("%s-p%d-us", name, q)
				all[unit] = append(all[unit], quantile(took[i], q)-direct*float64(min(i, 1)))
			}
		}
	}
	b.StopTimer()
	for unit, figures := range all {
		slices.Sort(figures)
		b.ReportMetric(figures[len(figures)/2], unit)
	}
}

// talk requests n streams over the wires, with staggered starts.
func talk(b *testing.B, wires []*wire, request []byte, n int) []time.Duration {
	var wg sync.WaitGroup
	took := make([][]time.Duration, len(wires))
	for i, w := range wires {
		wg.Go(func() {
			<-time.After(time.Duration(i) * 200 * time.Millisecond / time.Duration(len(wires)))
			for k := i; k < n; k += len(wires) {
				first, err := w.listen(request)
				if err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], first)
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...)
}

// BenchmarkCacheHit measures a cached answer: the latency over one connection, and the throughput over one connection
// per core.
func BenchmarkCacheHit(b *testing.B) {
	at := serve(b, sidecar(b, serve(b, trivial), asPreset(), gateway.Options{Cache: newCache(b, cache.Options{})}))
	request := question(completions, 4096, 1)
	if err := dial(b, at).call(request); err != nil {
		b.Fatal(err)
	}
	b.Run("one connection", func(b *testing.B) {
		w := dial(b, at)
		var took []time.Duration
		for b.Loop() {
			begun := time.Now()
			if err := w.call(request); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		b.ReportMetric(median(took), "p50-us")
	})
	b.Run("all cores", func(b *testing.B) {
		b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
		b.RunParallel(func(pb *testing.PB) {
			w := dial(b, at)
			for pb.Next() {
				if err := w.call(request); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hits/s")
	})
}

// BenchmarkDegraded measures the answer of the next tier while the upstream's breaker is open: a message, over one
// connection.
func BenchmarkDegraded(b *testing.B) {
	down := serve(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	p := asPreset()
	p.Breaker.Open, p.Retry.Base = time.Hour, time.Millisecond
	var o gateway.Options
	o.Cascade, o.Tiers = tiers(b, gateway.Tier{Messages: []string{"We are sorry."}})
	w := dial(b, serve(b, sidecar(b, down, p, o)))
	request := question(completions, 4096, 1)
	for range 10 {
		if err := w.call(request); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := w.call(request); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	b.ReportMetric(median(took), "p50-us")
	b.ReportMetric(quantile(took, 99), "p99-us")
}
