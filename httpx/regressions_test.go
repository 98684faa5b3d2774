package httpx_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
)

// Regression tests.

func TestWhatReachedTheUpstreamStaysCharged(t *testing.T) {
	p := steady(rate("l", 1, time.Hour, 2))
	p.MaxWait, p.Retry.Attempts = -1, 1
	u := open(t, p, weir.Options{})
	got := 0
	client := http.Client{Transport: httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
		got++
		return response(http.StatusTooEarly, http.NoBody), nil // not executed, but the upstream received it
	}))}
	for range 20 {
		if resp, err := client.Get("http://up.example/"); err == nil {
			_ = resp.Body.Close()
		}
	}
	if got != 2 {
		t.Errorf("the upstream got %d requests, want 2", got)
	}
}

func TestBrokenBodyClosesNoBreaker(t *testing.T) {
	c := &leap{At: 1000 * sec}
	u := open(t, weir.Policy{}, weir.Options{Clock: c})
	u.Breaker("").ForceOpen(u.Now(), 1)
	c.At += sec
	client := http.Client{Transport: httpx.NewTransport(u, trip(func(r *http.Request) (*http.Response, error) {
		_, err := io.ReadAll(r.Body)
		return nil, err
	}))}
	for range 3 {
		_, _ = client.Post("http://up.example/", "", io.MultiReader(strings.NewReader("x"), failing{io.ErrClosedPipe}))
	}
	if v := u.Breaker("").Look(u.Now()); v.Phase == breaker.Closed {
		t.Errorf("closed (%v) by an upstream that never answered", v.Why)
	}
}

func TestLastAnswerIsKeptIfTheBodyCannotBeSentAgain(t *testing.T) {
	n := 0
	read := make(chan bool)
	base := trip(func(r *http.Request) (*http.Response, error) {
		n++
		go func() { // like net/http, it continues to read after the response
			_, _ = io.Copy(io.Discard, r.Body)
			close(read)
		}()
		return response(http.StatusServiceUnavailable, io.NopCloser(strings.NewReader("slow down"))), nil
	})
	body := strings.NewReader(strings.Repeat("x", 2<<20))
	clock := &waitsFor{leap{At: 1000 * sec}, read}
	u := open(t, steady(), weir.Options{Clock: clock})
	resp, err := httpx.NewTransport(u, base).RoundTrip(request(t, background, http.MethodPut, io.NopCloser(body)))
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || n != 1 {
		t.Errorf("got %v after %d attempts, want the 503", err, n)
	}
}

// waitsFor is a clock whose Sleep waits for another event.
type waitsFor struct {
	leap
	done chan bool
}

func (c *waitsFor) Sleep(ctx context.Context, d time.Duration) error {
	<-c.done
	return c.leap.Sleep(ctx, d)
}

func TestEmptyIdempotencyKeyIsNone(t *testing.T) {
	n := 0
	u := open(t, steady(), weir.Options{})
	r := request(t, background, http.MethodPost, nil)
	r.Header.Set("Idempotency-Key", "")
	_, _ = httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
		n++
		return response(http.StatusInternalServerError, http.NoBody), nil
	})).RoundTrip(r)
	if n != 1 {
		t.Errorf("a POST was sent %d times", n)
	}
}

func TestOddPathKeepsItsOperation(t *testing.T) {
	p := steady()
	p.Operations = []weir.Operation{{Name: "start", Path: "/start/", Safe: weir.No}}
	u := open(t, p, weir.Options{})
	for _, target := range []*url.URL{
		{Scheme: "http", Host: "up.example", Opaque: "/start/a|b"},
		{Scheme: "http", Host: "up.example", Path: "/start/a"},
	} {
		r := request(t, background, http.MethodPut, nil)
		r.URL = target
		var story weir.Trace
		_, _ = httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
			return response(http.StatusInternalServerError, http.NoBody), nil
		})).RoundTrip(r.WithContext(httpx.WithTrace(background, &story)))
		if story.Operation != "start" || story.Attempts != 1 {
			t.Errorf("%v is operation %q and was sent %d times", target, story.Operation, story.Attempts)
		}
	}
}

func TestDeclaredDefaultOperationIsThatOfAllOthers(t *testing.T) {
	p := steady()
	p.Operations = []weir.Operation{{Name: "read", Methods: []string{"GET"}}, {Name: weir.DefaultOperation, Methods: []string{"POST"}, Safe: weir.No}}
	n := 0
	u := open(t, p, weir.Options{})
	_, _ = httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
		n++
		return response(http.StatusInternalServerError, http.NoBody), nil
	})).RoundTrip(request(t, background, http.MethodPut, nil))
	if n != 1 {
		t.Errorf("sent %d times, although the default operation is not safe", n)
	}
}
