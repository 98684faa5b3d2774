package delivery_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
)

// down returns a policy whose breaker opens for 30 s after three consecutive failures.
func down() (p weir.Policy) {
	p.Breaker = breaker.Config{Consecutive: 3, ConsecutiveFor: time.Nanosecond, Open: 30 * time.Second}
	return p
}

// An upstream is down for ten minutes with so few deliveries waiting that each becomes the breaker's probe repeatedly.
// The probes consume no attempts, and all deliveries succeed when the upstream is back.
func TestWhatABreakerFindsOutByIsNotBurnt(t *testing.T) {
	play(t, down(), func(s *site) { s.w.Schedule = schedule("messaging") }, func(s *site) {
		var back atomic.Bool
		s.answer = func(int, *http.Request) (int, http.Header) {
			if back.Load() {
				return 200, nil
			}
			return 503, nil
		}
		all := []delivery.Delivery{s.accept(message("alone"))}
		for _, body := range []string{"first", "second", "third"} {
			r := message(body)
			r.OrderKey = "in order"
			all = append(all, s.accept(r))
		}
		s.sleep(10 * time.Minute)
		if n := len(s.times()); n < 10 || n > 3+20 {
			t.Errorf("%d attempts in ten minutes, want those that open the breaker and one in each half minute", n)
		}
		back.Store(true)
		s.sleep(time.Minute)
		counted, starts := 0, 0
		for _, d := range all {
			got, err := s.q.Get(s.Context(), d.ID)
			if err != nil || got.Status != delivery.Completed {
				t.Errorf("%s after %d attempts (%s), %v; want it delivered", got.Status, got.Attempts, got.Detail, err)
			}
			attempts, err := s.q.Attempts(s.Context(), d.ID)
			if err != nil || len(attempts) != got.Starts {
				t.Errorf("%d attempts are kept, %v; want all %d", len(attempts), err, got.Starts)
			}
			for _, a := range attempts {
				if a.Counted {
					counted++
				} else if a.Status != 503 || string(a.Answer) != "answer" {
					t.Errorf("an attempt that was not counted is kept as %+v", a)
				}
			}
			starts += got.Starts
		}
		if counted != 3+4 || starts < 3+4+10 {
			t.Errorf("%d of %d attempts were counted, want the three that opened the breaker and the four that were delivered", counted, starts)
		}
	})
}

// A rate limit response closes the breaker, because the upstream is up, and counts as an attempt.
func TestWhatClosesABreakerIsCounted(t *testing.T) {
	play(t, down(), func(s *site) { s.w.Schedule = schedule("messaging") }, func(s *site) {
		var limits atomic.Bool
		s.answer = func(int, *http.Request) (int, http.Header) {
			if limits.Load() {
				return 429, nil
			}
			return 503, nil
		}
		d := s.accept(message("x"))
		s.sleep(20 * time.Second)
		s.is(d.ID, delivery.Queued, 3)
		limits.Store(true)
		s.sleep(10 * time.Minute)
		if got := s.is(d.ID, delivery.Failed, 4); got.Starts != 4 {
			t.Errorf("%d attempts were made, want 4: those that were throttled are counted", got.Starts)
		}
	})
}

// A slow probe does not count either, even if its breaker has sent another one meanwhile.
func TestAProbeThatHangsIsNotBurnt(t *testing.T) {
	p := down()
	p.Timeouts.Attempt, p.Timeouts.Headers, p.Breaker.ProbeTimeout = 40*time.Second, 40*time.Second, 20*time.Second
	play(t, p, func(s *site) { s.w.Schedule = schedule("messaging") }, func(s *site) {
		var back atomic.Bool
		s.answer = func(int, *http.Request) (int, http.Header) {
			if back.Load() {
				return 200, nil
			}
			return 0, nil
		}
		all := []delivery.Delivery{s.accept(message("one")), s.accept(message("two"))}
		s.sleep(30 * time.Minute)
		back.Store(true)
		s.sleep(2 * time.Minute)
		for _, d := range all {
			if got, err := s.q.Get(s.Context(), d.ID); err != nil || got.Status != delivery.Completed || got.Starts < 10 {
				t.Errorf("%s after %d of %d attempts (%s), %v; want it delivered", got.Status, got.Attempts, got.Starts, got.Detail, err)
			}
		}
	})
}
