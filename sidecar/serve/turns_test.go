package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Decisions about a language model that name only the user wait in a fair queue by user: a user with two hundred
// requests does not delay other users.
func TestDecisionsAboutModelsAreFairByUser(t *testing.T) {
	for _, preset := range []string{"openai", "anthropic", "gemini, limits: {rpm: {rate: 150/min, burst: 30, shape: bucket}}", "gemini-free, limits: {rpm: {rate: 60/min, burst: 5, shape: bucket}, rpd: off}", "openai-compatible, limits: {rpm: {rate: 60/min, burst: 5}}"} {
		t.Run(preset, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				stop := serveInside(t, n, "decide: {listen: \"127.0.0.1:81\"}\nupstreams: {chat: {preset: "+preset+", url: \"http://up.test\"}}\n")
				defer stop()
				client := &http.Client{Transport: n.Transport()}
				acquire := func(user string) (int, string, time.Duration) {
					begun := time.Now()
					body := fmt.Sprintf(`{"upstream":"chat","keys":{"user":%q},"wait":"30s"}`, user)
					resp, err := client.Post("http://127.0.0.1:81/v1/acquire", "application/json", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return 0, "", 0
					}
					defer resp.Body.Close()
					text, _ := io.ReadAll(resp.Body)
					return resp.StatusCode, string(text), time.Since(begun)
				}
				var wg sync.WaitGroup
				for range 200 {
					wg.Go(func() { acquire("ann") })
				}
				time.Sleep(100 * time.Millisecond)
				for _, user := range []string{"bob", "cid"} {
					wg.Go(func() {
						if status, text, took := acquire(user); status != http.StatusOK || took > 5*time.Second {
							t.Errorf("%s, who asks for one call: %d after %v: %s", user, status, took, text)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}
