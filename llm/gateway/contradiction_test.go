package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// Contradictory headers, which report a limit of three per minute that is full again in a tenth of a second, do not hold
// back any of sixty calls.
func TestHeadersThatContradictThemselvesHoldNobody(t *testing.T) {
	for _, left := range []string{"2", "0"} {
		synctest.Test(t, func(t *testing.T) {
			p, o := shipped(t, "preset: openai")
			c := dig(t, llmsim.Config{}, p, o)
			c.transport.Base = provided(func(r *http.Request) (*http.Response, error) {
				out := r.Clone(r.Context())
				if err := exchangeOf(r).Attempt(out); err != nil {
					return nil, err
				}
				if err := clock.System.Sleep(r.Context(), 50*time.Millisecond); err != nil {
					return nil, err
				}
				h := http.Header{"Content-Type": {"application/json"}, "X-Ratelimit-Limit-Requests": {"3"},
					"X-Ratelimit-Remaining-Requests": {left}, "X-Ratelimit-Reset-Requests": {"100ms"}}
				const body = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
				return &http.Response{Status: "200 OK", StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: out}, nil
			})
			ask := func(i int) {
				if a, err := c.ask(t.Context(), prompt("gpt-4o", fmt.Sprint(i))); err != nil || a.StatusCode != http.StatusOK {
					t.Errorf("%s left: call %d: %v %v", left, i, a.Response, err)
				}
			}
			ask(0)
			var wg sync.WaitGroup
			for i := range 59 {
				wg.Go(func() { ask(i) })
			}
			begun := time.Now()
			wg.Wait()
			t.Logf("%s left: 59 calls took %v", left, time.Since(begun))
		})
	}
}
