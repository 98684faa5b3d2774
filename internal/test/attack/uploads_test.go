//go:build linux

package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// Callers send their bodies at 2 bytes a second to the upstream of the normal traffic. Its breaker stays closed, normal calls
// do not wait, and the uploads are cut after half a minute. The bound of calls in flight depends on the machine's speed: a slow
// one refuses some uploads, and at most one normal call in a hundred. limit/inflight simulates such uploads in virtual time.
func TestAttackTrickledUploads(t *testing.T) {
	const uploads = 300
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "calm")
	}))
	defer s.Close()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	w := served.Start(t, local+fmt.Sprintf("upstreams:\n  calm: {url: %q}\n  gpt: {url: %q, llm: {family: openai}}\n", s.URL, model.URL), "GOMEMLIMIT=256MiB")
	at := w.Serve.Listen
	got := witnessed(t, "calm", at, func() {
		var wg sync.WaitGroup
		var mu sync.Mutex
		ends := make(map[string]int)
		begin := time.Now()
		for i := range uploads {
			wg.Go(func() {
				path := "/calm/x"
				if i%2 == 1 {
					path = "/gpt/v1/chat/completions"
				}
				end := trickle(t, at, path, i%3)
				mu.Lock()
				defer mu.Unlock()
				ends[end]++
			})
		}
		for time.Since(begin) < 25*time.Second { // a hundred uploads to the model declare a megabyte each
			resp := say(t, at, request("POST", "/gpt/v1/chat/completions", at, string(worst("text", 100_000)), "Content-Type: application/json"))
			if resp.StatusCode != 200 { // 503 would mean that it waited for the uploads
				t.Errorf("a call of a model beside the uploads: %s", resp.Status)
				break
			}
			time.Sleep(time.Second)
		}
		wg.Wait()
		took := time.Since(begin)
		t.Logf("%d uploads ended after %v: %v", uploads, took.Round(time.Second), ends)
		if ends["408"]+ends[bounded] != uploads || ends["408"] < uploads/2 || took < 25*time.Second { // a slow machine may take longer, but the uploads do not end by themselves
			t.Errorf("%d uploads of 2 B/s ended after %v: %v", uploads, took, ends)
		}
	})
	if got.Bounded > got.Calls/100 {
		t.Errorf("%d of %d calm calls were refused by the bound of what is in flight", got.Bounded, got.Calls)
	}
	metrics := text(get(t, "http://"+w.Serve.Admin+"/metrics"))
	if !strings.Contains(metrics, `weir_breakers{state="closed",upstream="calm"} 1`) || !strings.Contains(metrics, `{from="closed",to="open",upstream="calm"} 0`) {
		t.Errorf("the breaker is not closed: %s", grep(metrics, "breaker"))
	}
}

// bounded is weir's reason for a call that exceeds the bound of calls in flight.
const bounded = "concurrency_limited"

// trickle sends a body at 2 bytes a second: with a length, in chunks, or endless. It returns the response.
func trickle(t testing.TB, at, path string, kind int) string {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	head := []string{"Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 1000001\r\n\r\n"}[kind]
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\n%s", path, at, head)
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for piece := []string{"ab", "2\r\nab\r\n", "ab"}[kind]; ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Weir-Refused") == bounded {
		return bounded
	}
	if resp.StatusCode != http.StatusRequestTimeout {
		said, _ := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, said)
	}
	return fmt.Sprint(resp.StatusCode)
}
