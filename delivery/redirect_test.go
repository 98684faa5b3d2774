package delivery_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// A redirect is not followed. The dead letter contains the host of its target, without path and query.
func TestRedirectsAreDead(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		status := 0
		s.answer = func(int, *http.Request) (int, http.Header) {
			return status, http.Header{"Location": {"https://other.test/secret?token=1"}}
		}
		for _, status = range []int{301, 302, 303, 304, 307, 308} {
			d := s.accept(message("x"))
			s.sleep(time.Second)
			got := s.is(d.ID, delivery.Failed, 1)
			if got.Reason != delivery.Rejected || !strings.Contains(got.Detail, "other.test") || strings.Contains(got.Detail, "secret") || strings.Contains(got.Detail, "token") {
				t.Errorf("%d: %s: %s", status, got.Reason, got.Detail)
			}
		}
		status = 304
		r := message("x")
		r.Header.Set("If-None-Match", "e")
		d := s.accept(r)
		s.sleep(time.Second)
		s.is(d.ID, delivery.Completed, 1)
	})
}

// A switch to another protocol is not a response: the delivery is retried.
func TestAnotherProtocolIsNoAnswer(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		s.answer = func(n int, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return http.StatusSwitchingProtocols, http.Header{"Upgrade": {"other"}}
			}
			return 200, nil
		}
		d := s.accept(message("x"))
		s.sleep(time.Second)
		s.is(d.ID, delivery.Queued, 1)
		all, err := s.q.Attempts(s.Context(), d.ID)
		if err != nil || len(all) == 0 {
			t.Fatal(err)
		}
		first := all[0]
		if first.Status != 101 || first.Class != outcome.Failed || !strings.Contains(first.Code, "not a final status") || len(first.Answer) > 0 {
			t.Errorf("%d %v %s %q", first.Status, first.Class, first.Code, first.Answer)
		}
		s.sleep(time.Hour)
		s.is(d.ID, delivery.Completed, 2)
	})
}

// The wait that an upstream asks for is limited by max_pause.
func TestHintsAreBounded(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		s.answer = func(n int, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return 503, http.Header{"Retry-After": {"99999999"}}
			}
			return 200, nil
		}
		d := s.accept(message("x"))
		s.sleep(time.Second)
		if wait := time.Until(s.is(d.ID, delivery.Queued, 1).Due); wait > s.u.Policy().MaxPause {
			t.Errorf("due in %v, want %v at most", wait, s.u.Policy().MaxPause)
		}
	})
}

func TestARedriveWaitsForItsTime(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		r := message("x")
		r.NotBefore = time.Now().Add(time.Hour)
		d := s.accept(r)
		for _, do := range []func() (int, error){
			func() (int, error) { return s.w.Drop(s.Context(), delivery.Filter{IDs: []string{d.ID}}, 1) },
			func() (int, error) { return s.w.Redrive(s.Context(), delivery.Filter{IDs: []string{d.ID}}, 1) },
		} {
			if n, err := do(); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		s.sleep(59 * time.Minute)
		s.is(d.ID, delivery.Queued, 0)
		s.sleep(2 * time.Minute)
		s.is(d.ID, delivery.Completed, 1)
	})
}

func TestFingerprintsOfHeadersThatAreKept(t *testing.T) {
	print := func(name, value string) []byte {
		r := message("x")
		r.Header.Set(name, value)
		return r.Fingerprint()
	}
	for _, name := range []string{"Title", "Accept", "Priority"} {
		if bytes.Equal(print(name, "1"), print(name, "2")) {
			t.Errorf("another %s is the same request", name)
		}
	}
	for _, name := range []string{"Traceparent", "Tracestate", "X-Amzn-Trace-Id"} {
		if !bytes.Equal(print(name, "1"), print(name, "2")) {
			t.Errorf("another trace is another request, by its %s", name)
		}
	}
	later := message("x")
	later.NotBefore = time.Unix(1e9, 0)
	if bytes.Equal(later.Fingerprint(), message("x").Fingerprint()) {
		t.Error("another instant is the same request")
	}
}
