package serve

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// While the primary is at its limit or throttles, calls wait for it at most a second, or for the wait of the cascade.
// Then the next model answers. The message is used only if no model answers.
func TestCascadeLeavesALimitedTierAfterASecond(t *testing.T) {
	const second = `tiers: [{name: second, upstream: spare, model: gpt-4o-mini}, {message: We are sorry.}]`
	for name, c := range map[string]struct {
		more     string
		throttle bool
		most     time.Duration
	}{
		"its rate":          {", limits: {rpm: {rate: 1/s, burst: 1}}, llm: {cascade: {" + second + "}}", false, 3 * time.Second},
		"its slots":         {", concurrency: 1, llm: {cascade: {" + second + "}}", false, 3 * time.Second},
		"429":               {", llm: {cascade: {" + second + "}}", true, 3 * time.Second},
		"its rate, wait 3s": {", limits: {rpm: {rate: 1/s, burst: 1}}, llm: {cascade: {wait: 3s, " + second + "}}", false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				n.Serve("spare.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(300 * time.Millisecond)
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","created":1,"model":"gpt-4o-mini","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},`+
						`"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
				}))
				sim, ask, stop := chatter(t, n, c.more+`}, spare: {preset: openai, url: "http://spare.test"`)
				defer stop()
				if c.throttle {
					sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Model: "gpt-4o", Times: -1})
				}
				var wg sync.WaitGroup
				var mu sync.Mutex
				var times []time.Duration
				tiers := map[string]int{}
				for i := range 20 {
					wg.Go(func() {
						status, header, took := ask(fmt.Sprint("call ", i), false)
						mu.Lock()
						defer mu.Unlock()
						times = append(times, took)
						if tiers[header.Get(gateway.TierHeader)]++; status != http.StatusOK {
							t.Errorf("status %d", status)
						}
					})
				}
				wg.Wait()
				slices.Sort(times)
				if times[19] > c.most || tiers["second"] < 15 || tiers["message"] > 0 {
					t.Errorf("the slowest took %v, want at most %v; answered by %v", times[19], c.most, tiers)
				}
			})
		})
	}
}
