package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// Bodies of all sizes, announced or not, reach the model unchanged, also when they are sent twice. No memory stays
// reserved.
func TestMemoryOfBodies(t *testing.T) {
	p := quick()
	p.Retry.Attempts = 2
	p.Timeouts = weir.Timeouts{Headers: 5 * time.Minute, Attempt: 5 * time.Minute, Call: 5 * time.Minute} // reading megabytes takes long on a busy machine
	b := start(t, setup{policy: p, options: gateway.Options{}})
	before, _, _ := buffers.Bodies.Use()
	tables, _, _ := buffers.Tables.Use()
	for i, size := range []int{10, 10_000, 100_000, 600_000, 3 << 20} {
		for _, stream := range []bool{false, true} {
			for _, announced := range []bool{true, false} {
				text := strings.Repeat("w", size)
				body := fmt.Sprintf(`{"model":"gpt-4o","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, stream, text)
				var from io.Reader = strings.NewReader(body)
				if !announced {
					from = io.MultiReader(from)
				}
				if i%2 == 0 && size < 1<<20 { // larger bodies are not sent again
					b.sim.Fault(llmsim.Fault{Kind: llmsim.Error})
				}
				r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+completions, from)
				r.Header.Set("Authorization", "Bearer sk-test")
				r.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				said, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%d bytes, stream %v, announced %v: %s, %v: %.200s, attempts %s", size, stream, announced, resp.Status, err, said, resp.Header.Get(proxy.AttemptsHeader))
				}
			}
		}
	}
	b.calls.Wait()
	after, _, _ := buffers.Bodies.Use()
	if used, _, _ := buffers.Tables.Use(); after != before || used != tables {
		t.Errorf("%d bytes of bodies and %d of tables stay taken", after-before, used-tables)
	}
}
