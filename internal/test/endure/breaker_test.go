package endure

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/raced"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// open creates the preset's upstream, and a client of it.
func (c *candidate) open(t testing.TB, p *provider) (*weir.Upstream, client) {
	u, err := weir.New(strings.Fields(c.name)[0], c.policy(t), weir.Options{Events: weirprom.New(prometheus.NewRegistry()).Events()}) // with events, as in a sidecar
	if err != nil {
		t.Fatal(err)
	}
	by := &httpx.Transport{Upstream: u, Base: p, Call: func(*http.Request) weir.Call { return c.call }}
	return u, func(ctx context.Context) error { return fine(post(ctx, by)) }
}

// The breaker of a preset leaves each call all attempts of its retries, and counts them as one call.
func TestNoBreakerOfAPresetCutsASeriesShort(t *testing.T) {
	for _, c := range candidates() {
		if strings.HasPrefix(c.name, "gemini-free") {
			continue // its budget ends a series, to save the day's requests
		}
		synctest.Test(t, func(t *testing.T) {
			p := open(fault{to: time.Hour}, c.words, 1)
			u, call := c.open(t, p)
			want := 1 // attempts that may have had an effect are not repeated
			if c.call.Safe {
				want = u.Policy().Retry.Attempts
			}
			if _ = call(t.Context()); p.attempts != want {
				t.Errorf("%s: %d attempts, want %d", c.name, p.attempts, want)
			}
			counted := 0
			for _, b := range u.Look(0).Breakers {
				if counted += max(b.InARow, b.Failed); b.Phase != breaker.Closed {
					t.Errorf("%s: the breaker is %v after a call", c.name, b.Phase)
				}
			}
			want = 1
			if u.Policy().Breaker.Off {
				want = 0
			}
			if counted != want {
				t.Errorf("%s: the breakers count %d calls, want %d", c.name, counted, want)
			}
		})
	}
}

// At a hundred calls a second with 1% failed attempts, the breaker refuses no call. Two failing calls cost no other call.
func TestNoBreakerOfAPresetOpensOnALittleTrouble(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, c := range candidates() {
		if name := strings.Fields(c.name)[0]; name != "s3" && name != "dynamodb" && name != "http" && name != "openai-compatible" {
			continue // the others allow less
		}
		synctest.Test(t, func(t *testing.T) {
			p := open(fault{share: 0.01}, c.words, 1)
			u, call := c.open(t, p)
			var mu sync.Mutex
			var calls sync.WaitGroup
			lost, failed := 0, 0
			for range 6000 {
				calls.Go(func() {
					err := call(t.Context())
					mu.Lock()
					defer mu.Unlock()
					if _, refused := errors.AsType[*weir.Refusal](err); refused {
						lost++
					} else if err != nil {
						failed++ // all attempts fail, once in a million calls
					}
				})
				time.Sleep(10 * time.Millisecond)
			}
			calls.Wait()
			for _, b := range u.Look(0).Breakers {
				if b.Phase != breaker.Closed || int(b.Failed) > failed {
					t.Errorf("%s: the breaker is %v and counts %d failed calls", c.name, b.Phase, b.Failed)
				}
			}
			if lost > 0 || failed > 2 {
				t.Errorf("%s: %d of 6000 calls are lost, and %d failed", c.name, lost, failed)
			}
			p.f = fault{to: 24 * time.Hour}
			_, _ = call(t.Context()), call(t.Context())
			p.f = fault{}
			if err := call(t.Context()); err != nil {
				t.Errorf("%s: after two calls for what is broken: %v", c.name, err)
			}
		})
	}
}
