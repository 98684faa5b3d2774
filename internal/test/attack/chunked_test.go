//go:build unix

package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// Half of many bodies without a declared length has arrived, and they use up the share of large bodies. They must not deadlock.
func TestAttackChunkedBodies(t *testing.T) {
	m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer m.Close()
	w := served.Start(t, local+fmt.Sprintf("upstreams:\n  gpt: {url: %q, llm: {family: openai}}\n", m.URL), "GOMEMLIMIT=256MiB")
	body := worst("text", 2560<<10)
	const callers, half = 24, 2<<20 + 64<<10
	var there, done sync.WaitGroup
	there.Add(callers)
	for range callers {
		done.Go(func() {
			read, write := io.Pipe()
			go func() {
				come := make(chan struct{})
				go func() { // as much as weir has memory for
					_, _ = write.Write(body[:half])
					close(come)
				}()
				select {
				case <-come:
				case <-time.After(time.Second):
				}
				there.Done()
				there.Wait()
				<-come
				_, _ = write.Write(body[half:])
				_ = write.Close()
			}()
			resp, err := http.Post("http://"+w.Serve.Listen+"/gpt/v1/chat/completions", "application/json", read)
			if err != nil {
				t.Error(err)
				return
			}
			if said := text(resp); resp.StatusCode != http.StatusOK {
				t.Errorf("%s %s", resp.Status, said)
			}
		})
	}
	done.Wait()
}
