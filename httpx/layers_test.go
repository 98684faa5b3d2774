package httpx_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// Only the outer Transport repeats a call made within its attempt, also if the call's context is derived from the attempt's.
func TestACallWithinAnAttemptIsNotRepeatedByBoth(t *testing.T) {
	sent := 0
	inner := httpx.NewTransport(open(t, quick(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
		sent++
		return response(503, http.NoBody), nil
	}))
	outer := httpx.NewTransport(open(t, quick(), weir.Options{}), trip(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		return inner.RoundTrip(r.WithContext(ctx))
	}))
	resp, err := outer.RoundTrip(request(t, background, http.MethodGet, nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if sent != 3 {
		t.Errorf("%d were sent, want the 3 attempts of the outer one", sent)
	}
}
