package serve

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// chatter runs a sidecar with the OpenAI preset in front of a simulated provider. Its callers send no timeout header,
// as OpenAI's SDK does not.
func chatter(t *testing.T, n *memnet.Network, more string) (sim *llmsim.Provider, ask func(text string, stream bool) (status int, header http.Header, took time.Duration), stop func()) {
	sim = llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}})
	n.Serve("model.test", sim)
	stop = serveInside(t, n, "upstreams: {chat: {preset: openai, url: \"http://model.test\""+more+"}}\n")
	client := &http.Client{Transport: n.Transport()}
	return sim, func(text string, stream bool) (int, http.Header, time.Duration) {
		begun := time.Now()
		body := fmt.Sprintf(`{"model":"gpt-4o","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text)
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/chat/v1/chat/completions", strings.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer sk-test")
		resp, err := client.Do(q)
		if err != nil {
			t.Error(err)
			return 0, nil, 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header, time.Since(begun)
	}, stop
}

// A hanging model is abandoned, before or after its headers, early enough for another model to answer within 21 s to
// callers without a timeout.
func TestAHangingModelThroughTheSidecar(t *testing.T) {
	for _, where := range []llmsim.Where{llmsim.BeforeHeaders, llmsim.AfterHeaders} {
		for _, stream := range []bool{false, true} {
			for _, warm := range []int{0, 10} {
				t.Run(fmt.Sprint(where, stream, warm), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						n := memnet.New()
						defer n.Close()
						sim, ask, stop := chatter(t, n, ", llm: {cascade: {tiers: [{name: second, model: gpt-4o-mini}, {message: We are sorry.}]}}")
						defer stop()
						for i := range warm {
							ask(fmt.Sprint("warm ", i), stream)
						}
						sim.Fault(llmsim.Fault{Kind: llmsim.Hang, Where: where, Model: "gpt-4o", Times: -1})
						status, header, took := ask("hi", stream)
						if status != http.StatusOK || header.Get(gateway.TierHeader) != "second" || took > 21*time.Second {
							t.Errorf("%d by %q after %v", status, header.Get(gateway.TierHeader), took)
						}
						sim.Clear()
					})
				})
			}
		}
	}
}

// If a call's timeout ends while it waits in weir, it gets 429 with Retry-After. It does not count as a timeout of the
// upstream, which never received it.
func TestPatienceEndsInTheSidecarsQueue(t *testing.T) {
	for _, more := range []string{
		", llm: {patience: 8s}, limits: {rpm: {rate: 20/min, burst: 1}}",
		", llm: {patience: 8s}, concurrency: 1",
		", llm: {patience: 8s}, limits: {tpm: {rate: 9000/min, burst: 1100, unit: tokens}}",
	} {
		t.Run(more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				sim, ask, stop := chatter(t, n, more)
				defer stop()
				var wg sync.WaitGroup
				var mu sync.Mutex
				all := map[int]int{}
				for i := range 60 {
					wg.Go(func() {
						status, header, took := ask(fmt.Sprint("call ", i), false)
						mu.Lock()
						defer mu.Unlock()
						all[status]++
						after, err := strconv.Atoi(header.Get("Retry-After"))
						if status == http.StatusTooManyRequests && (err != nil || after < 1) || status != http.StatusOK && status != http.StatusTooManyRequests || took > 9*time.Second {
							t.Errorf("%d after %v, Retry-After %q", status, took, header.Get("Retry-After"))
						}
					})
				}
				wg.Wait()
				if len(sim.Log()) != all[http.StatusOK] || all[http.StatusOK] == 0 || all[http.StatusTooManyRequests] == 0 {
					t.Errorf("%d were sent, answers: %v", len(sim.Log()), all)
				}
			})
		})
	}
}
