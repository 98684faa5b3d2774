package delivery_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

func givesUp(g delivery.GiveUp) func(*site) {
	return func(s *site) { s.w.GivesUp = func(string) delivery.GiveUp { return g } }
}

// died checks that a delivery is a dead letter with the given reason and detail.
func (s *site) died(id string, why delivery.Reason, detail string) {
	s.Helper()
	d, err := s.q.Get(s.Context(), id)
	if err != nil || d.Status != delivery.Failed || d.Reason != why || !strings.Contains(d.Detail, detail) {
		s.Errorf("%s (%s) %q, %v; want failed (%s) %q", d.Status, d.Reason, d.Detail, err, why, detail)
	}
}

// With GiveUp.Open, an open breaker makes dead letters immediately, and the first delivery after the open period is its
// probe.
func TestAnOpenBreakerMakesDeadLettersWhereItIsToDoSo(t *testing.T) {
	play(t, two(), givesUp(delivery.GiveUp{Open: true}), func(s *site) {
		for _, b := range s.u.Breakers() {
			b.ForceOpen(s.u.Now(), 0)
		}
		var ended []string
		s.w.Events.Ended = func(d *delivery.Delivery, a *delivery.Attempt) { ended = append(ended, d.ID+" "+a.Code) }
		id := s.accept(message("one")).ID
		s.sleep(time.Second)
		s.died(id, delivery.Unavailable, "a.test service unavailable")
		if len(s.sent) != 0 || len(ended) != 1 || ended[0] != id+" circuit_open" {
			t.Errorf("sent %d, heard of %q", len(s.sent), ended)
		}
		for _, b := range s.u.Breakers() {
			b.Reset(s.u.Now())
		}
		s.accept(message("two"))
		s.sleep(time.Second)
		if s.counts(delivery.Completed) != 1 {
			t.Error("what came after the breaker had closed was not delivered")
		}
	})
}

// The Detail of a delivery that expires behind an open breaker names the unavailable upstream. That of another expired
// delivery does not.
func TestWhatExpiresBehindAnOpenBreakerSaysWhoIsAway(t *testing.T) {
	play(t, two(), nil, func(s *site) {
		expires := func() string {
			r := message("one")
			r.Expires = time.Now().Add(30 * time.Second)
			return s.accept(r).ID
		}
		for _, b := range s.u.Breakers() {
			b.ForceOpen(s.u.Now(), 0)
		}
		first, passedOver := expires(), expires()
		s.sleep(time.Minute)
		for _, id := range []string{first, passedOver} {
			s.died(id, delivery.Expired, "a.test service unavailable: it expired before")
		}
		for _, b := range s.u.Breakers() {
			b.Reset(s.u.Now())
		}
		s.accept(message("two"))
		s.sleep(time.Second)
		head := message("three")
		head.OrderKey, head.NotBefore = "line", time.Now().Add(time.Hour)
		s.accept(head)
		r := message("four")
		r.OrderKey, r.Expires = "line", time.Now().Add(time.Minute)
		id := s.accept(r).ID
		s.sleep(2 * time.Minute)
		s.died(id, delivery.Expired, "it expired before")
		if d, _ := s.q.Get(s.Context(), id); strings.Contains(d.Detail, "unavailable") {
			t.Errorf("says %q", d.Detail)
		}
	})
}

// The zero GiveUp gives up nothing for an open breaker or a lost response.
func TestNothingIsGivenUpUnlessItIsToBe(t *testing.T) {
	play(t, weir.Policy{}, nil, func(s *site) {
		s.answer = func(n int, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return 502, nil
			}
			return 200, nil
		}
		s.accept(message("one"))
		s.sleep(time.Minute)
		if s.counts(delivery.Completed) != 1 || len(s.sent) != 2 {
			t.Errorf("%d delivered by %d attempts, want 1 by 2", s.counts(delivery.Completed), len(s.sent))
		}
	})
}

// With GiveUp.Unknown, an attempt that may have been executed is not repeated. An attempt that certainly was not
// executed is repeated.
func TestALostAnswerIsNotRepeatedWhereItIsNotToBe(t *testing.T) {
	for name, tt := range map[string]struct {
		status int // of the first response; 0 for none
		again  bool
	}{"no answer": {0, false}, "bad gateway": {502, false}, "gateway timeout": {504, false}, "throttled": {429, true}, "failed": {500, true}, "unavailable": {503, true}} {
		t.Run(name, func(t *testing.T) {
			play(t, weir.Policy{Timeouts: weir.Timeouts{Attempt: 10 * time.Second}}, givesUp(delivery.GiveUp{Unknown: true}), func(s *site) {
				s.answer = func(n int, _ *http.Request) (int, http.Header) {
					if n == 1 {
						return tt.status, nil
					}
					return 200, nil
				}
				id := s.accept(message("one")).ID
				s.sleep(time.Minute)
				if tt.again && (len(s.sent) != 2 || s.counts(delivery.Completed) != 1) {
					t.Errorf("%d attempts, want a second one", len(s.sent))
				}
				if !tt.again {
					s.died(id, delivery.Uncertain, "may have been delivered")
					if len(s.sent) != 1 {
						t.Errorf("%d attempts, want 1", len(s.sent))
					}
				}
			})
		})
	}
}

// An attempt whose connection failed has delivered nothing.
func TestWhatWasNeverSentGoesAgain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	play(t, weir.Policy{}, func(s *site) {
		givesUp(delivery.GiveUp{Unknown: true})(s)
		n := 0
		s.w.Sender = func(string) delivery.Sender {
			return &delivery.HTTP{Upstream: s.u, URL: &url.URL{Scheme: "http", Host: "a.test"}, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return nil, refused
				}
				return s.RoundTrip(r)
			})}
		}
	}, func(s *site) {
		s.accept(message("one"))
		s.sleep(time.Minute)
		if s.counts(delivery.Completed) != 1 {
			t.Error("it was given up")
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// amnesiac does not record that attempts ended, as if the process were killed before.
type amnesiac struct {
	delivery.Queue
	knows atomic.Bool // if set, ends are recorded
}

func (q *amnesiac) End(ctx context.Context, ends ...delivery.End) ([]delivery.Claim, error) {
	if q.knows.Load() {
		return q.Queue.End(ctx, ends...)
	}
	return nil, delivery.ErrClosed
}

// With GiveUp.Unknown, an attempt that its worker abandoned is not repeated, unless an operator redrives it.
func TestWhatItsWorkerLeftIsNotRepeatedWhereItIsNotToBe(t *testing.T) {
	for _, once := range []bool{true, false} {
		var q *amnesiac
		play(t, weir.Policy{}, func(s *site) {
			givesUp(delivery.GiveUp{Unknown: once})(s)
			q = &amnesiac{Queue: s.q}
			s.w.Queue = q
		}, func(s *site) {
			d := s.accept(message("one"))
			s.sleep(time.Second)
			if len(s.sent) != 1 || s.counts(delivery.Completed) != 0 {
				t.Fatalf("sent %d, %d delivered; want one whose end nobody knows", len(s.sent), s.counts(delivery.Completed))
			}
			q.knows.Store(true) // while its lease expires
			s.sleep(5 * time.Minute)
			if !once {
				if s.counts(delivery.Completed) != 1 || len(s.sent) != 2 {
					t.Errorf("sent %d, %d delivered; want 2 and 1", len(s.sent), s.counts(delivery.Completed))
				}
				return
			}
			s.died(d.ID, delivery.Uncertain, "started and never ended")
			attempts, err := s.q.Attempts(s.Context(), d.ID)
			if err != nil || len(attempts) != 2 || attempts[0].Class != outcome.Unknown || attempts[1].Class != outcome.Canceled {
				t.Errorf("attempts %v, %v", attempts, err)
			}
			if n, err := s.w.Redrive(s.Context(), delivery.Filter{IDs: []string{d.ID}}, 1); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			s.sleep(time.Minute)
			if s.counts(delivery.Completed) != 1 || len(s.sent) != 2 {
				t.Errorf("after a redrive sent %d, %d delivered; want 2 and 1", len(s.sent), s.counts(delivery.Completed))
			}
		})
	}
}
