package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/lambdax"
)

// A keyServer serves an issuer's keys in a bubble, fails, or does not respond.
type keyServer struct {
	set   []byte
	state atomic.Value // "", "away", "silent"
	reads atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (k *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.reads.Add(1)
	status := http.StatusOK
	switch k.state.Load() {
	case "silent":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "away":
		status = http.StatusInternalServerError
	case "slow":
		time.Sleep(time.Second)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(k.set)), Request: r}, nil
}

// keysThat starts the program in a bubble with a key server in the given state. play receives a function that returns the
// result of a token and the number of fetches it caused.
func keysThat(t *testing.T, state string, play func(ctx context.Context, k *keyServer, say func() (lambdax.Code, time.Duration, int64))) {
	i := newIssuer(t)
	k := &keyServer{set: i.set}
	k.state.Store(state)
	token := i.token(t, "ada", "", nil)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		tokens, err := NewTokens(ctx, "https://login.example.com/keys", i.URL, audience, newLog(&lines{}), k)
		if err != nil {
			t.Fatal(err)
		}
		play(ctx, k, func() (lambdax.Code, time.Duration, int64) {
			before, begin := k.reads.Load(), time.Now()
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			_, err := tokens.Caller(r)
			var code lambdax.Code
			if e, ok := errors.AsType[*lambdax.Error](err); ok {
				code = e.Code
				if code == lambdax.ServiceUnavailable && e.Wait <= 0 {
					t.Error("503 without when to come back")
				}
			}
			return code, time.Since(begin), k.reads.Load() - before
		})
	})
}

// Fetching keys has a separate breaker. While it fails, a token is neither accepted nor permanently rejected, and fetching
// pauses after three failures.
func TestKeysHaveABreakerOfTheirOwn(t *testing.T) {
	keysThat(t, "away", func(_ context.Context, k *keyServer, say func() (lambdax.Code, time.Duration, int64)) {
		for range 2 { // the start was the first fetch
			if code, _, reads := say(); code != lambdax.ServiceUnavailable || reads == 0 {
				t.Errorf("while keys cannot be read: %q after %d readings", code, reads)
			}
		}
		for range 100 {
			if code, took, reads := say(); code != lambdax.ServiceUnavailable || reads != 0 || took != 0 {
				t.Fatalf("while the breaker is open: %q after %v and %d readings", code, took, reads)
			}
		}
		k.state.Store("")
		time.Sleep(between)
		if code, _, reads := say(); code != "" || reads != 1 {
			t.Errorf("when they can be read again: %q after %d readings", code, reads)
		}
		k.state.Store("away")
		if code, _, reads := say(); code != "" || reads != 0 {
			t.Errorf("with keys that are known: %q after %d readings", code, reads)
		}
	})
}

func TestKeysHaveATimeLimitOfTheirOwn(t *testing.T) {
	keysThat(t, "silent", func(_ context.Context, _ *keyServer, say func() (lambdax.Code, time.Duration, int64)) {
		if code, took, _ := say(); code != lambdax.ServiceUnavailable || took > within {
			t.Errorf("%q after %v, want %q within %v", code, took, lambdax.ServiceUnavailable, within)
		}
	})
}

// Requests with an unknown key wait for the fetch that another request has begun.
func TestKeysAreReadOnceForAllWhoWait(t *testing.T) {
	keysThat(t, "away", func(_ context.Context, k *keyServer, say func() (lambdax.Code, time.Duration, int64)) {
		k.state.Store("slow")
		before := k.reads.Load()
		codes := make(chan lambdax.Code)
		for range 50 {
			go func() { code, _, _ := say(); codes <- code }()
		}
		for range 50 {
			if code := <-codes; code != "" {
				t.Errorf("a good token: %q", code)
			}
		}
		if n := k.reads.Load() - before; n != 1 {
			t.Errorf("%d readings for fifty tokens", n)
		}
	})
}

// Tokens with unknown keys cannot cause more fetches than the limit allows.
func TestTokensOfUnknownKeysDoNotFloodTheirIssuer(t *testing.T) {
	keysThat(t, "", func(ctx context.Context, k *keyServer, say func() (lambdax.Code, time.Duration, int64)) {
		k.set = []byte(`{"keys":[]}`)
		if _, _, reads := say(); reads != 0 {
			t.Fatalf("%d readings for a key that is known", reads)
		}
		keys, err := NewKeys(ctx, "https://login.example.com/keys", newLog(&lines{}), k)
		if err != nil {
			t.Fatal(err)
		}
		before := k.reads.Load()
		var refused error
		for i := range 200 {
			_, err := keys.KeyRead(ctx, string(rune('a'+i)))
			refused = err
		}
		if n := k.reads.Load() - before; n != 5 { // the first was at the start
			t.Errorf("%d readings for two hundred unknown keys, want 5", n)
		}
		if r, ok := errors.AsType[*weir.Refusal](refused); !ok || r.Reason != weir.RateLimited {
			t.Errorf("the last: %v, want a refusal by the limit", refused)
		}
	})
}
