package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// 300 callers stop reading in the middle of their responses. A call to another upstream does not wait for memory that
// they hold, neither for their request bodies nor for the copies of their responses.
func TestStalledReadersHoldNoMemoryThatOthersNeed(t *testing.T) {
	const whole = `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	event := `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("word ", 50) + `"}}]}` + "\n\n"
	stream := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			if _, err := io.WriteString(w, event); err != nil || i > 10_000 {
				return
			}
		}
	}
	long := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, whole, strings.Repeat("word ", 20_000))
	}
	down := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusBadRequest + 1) // not worth a retry
	}
	for _, c := range []struct {
		name, llm string
		stream    bool
		varied    bool // each caller sends another question
		big       http.HandlerFunc
		reads     int // bytes that each caller reads before it stops
	}{
		{name: "stream", llm: "{family: openai}", stream: true, varied: true, big: stream, reads: 100},
		{name: "answer", llm: "{family: openai}", varied: true, big: long, reads: 100},
		{name: "stream that is cached", llm: "{family: openai, cache: true}", stream: true, varied: true, big: stream, reads: 200 << 10},
		{name: "cached answer", llm: "{family: openai, cache: true}", big: long, reads: 100},
		{name: "other tier", llm: "{family: openai, key_env: UP_KEY, cascade: {tiers: [{upstream: spare}]}}", stream: true, varied: true, big: down, reads: 100},
		{name: "other model", llm: "{family: openai, key_env: UP_KEY, cascade: {tiers: [{upstream: spare, model: other}]}}", stream: true, varied: true, big: down, reads: 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				n.Serve("big.test", c.big)
				n.Serve("spare.test", http.HandlerFunc(stream))
				n.Serve("calm.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, whole, "hi")
				}))
				stop := serveInside(t, n, `
upstreams:
  big: {url: "http://big.test", llm: `+c.llm+`, breaker: off}
  spare: {url: "http://spare.test", llm: {family: openai, key_env: UP_KEY}}
  calm: {url: "http://calm.test", llm: {family: openai}}
`)
				defer stop()
				const size, left = 16 << 10, 3 << 20
				defer takeMemory(t, left)()
				ask := func(i int, size int, stream bool) string {
					body := fmt.Sprintf(`{"model":"gpt-4o","stream":%v,"messages":[{"role":"user","content":"%d %s"}]}`, stream, i, strings.Repeat("w", size))
					return fmt.Sprintf("Host: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				}
				for i := range 300 {
					conn, err := n.Dial(context.Background(), "tcp", "localhost:80")
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					of := 0
					if c.varied {
						of = i
					}
					if _, err := io.WriteString(conn, "POST /big/v1/chat/completions HTTP/1.1\r\n"+ask(of, size, c.stream)); err != nil {
						t.Fatal(err)
					}
					head := make([]byte, c.reads)
					if _, err := io.ReadFull(conn, head); err != nil || !strings.HasPrefix(string(head), "HTTP/1.1 200") {
						t.Fatalf("caller %d: %v, %.300s", i, err, head)
					}
				}
				synctest.Wait()
				conn, err := n.Dial(context.Background(), "tcp", "localhost:80")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				begin := time.Now()
				if _, err := io.WriteString(conn, "POST /calm/v1/chat/completions HTTP/1.1\r\n"+ask(0, 1_000_000, false)); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); resp.StatusCode != http.StatusOK || took > 0 {
					t.Errorf("the other upstream's call got %s after %v", resp.Status, took)
				}
			})
		})
	}
}

// takeMemory takes all memory for bodies except for left bytes, until giveBack.
func takeMemory(t *testing.T, left int64) (giveBack func()) {
	t.Helper()
	var taken []int64
	for n := int64(buffers.Small); n > 0; n /= 2 {
		for {
			used, _, _ := buffers.Bodies.Use()
			if buffers.Bodies.Total()-used-n < left || !buffers.Bodies.Take(n) {
				break
			}
			taken = append(taken, n)
		}
	}
	return func() {
		for _, n := range taken {
			buffers.Bodies.Give(n)
		}
	}
}
