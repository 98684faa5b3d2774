package delivery_test

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// moving gives the site's upstream a host that the test can change. The empty host removes the upstream.
func (s *site) moving(host *atomic.Value) {
	s.w.Sender = func(upstream string) delivery.Sender {
		at := host.Load().(string)
		if upstream != "a" || at == "" {
			return nil
		}
		return &delivery.HTTP{Upstream: s.u, URL: &url.URL{Scheme: "http", Host: at}, Base: s}
	}
}

// seldom allows one call every ten minutes and queues the rest.
func seldom() weir.Policy {
	return weir.Policy{MaxWait: 2 * time.Hour, Timeouts: weir.Timeouts{Call: 2 * time.Hour}, Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: 10 * time.Minute, Burst: 1}}}}
}

// A delivery that waits for its turn is sent to its upstream's new host, whether or not Moved was called.
func TestWhatWaitsGoesToWhereItsUpstreamIs(t *testing.T) {
	for _, told := range []bool{false, true} {
		var host atomic.Value
		host.Store("old.test")
		hosts := make(map[string]int)
		play(t, seldom(), func(s *site) { s.moving(&host) }, func(s *site) {
			s.answer = func(_ int, r *http.Request) (int, http.Header) { hosts[r.URL.Host]++; return 200, nil }
			for range 3 {
				s.accept(message("x"))
			}
			s.sleep(time.Minute)
			host.Store("new.test")
			if told {
				s.w.Moved()
			}
			s.sleep(time.Hour)
			if n := s.counts(delivery.Completed); n != 3 || hosts["old.test"] != 1 || hosts["new.test"] != 2 {
				t.Errorf("told %v: %d of 3 were delivered, at %v; want one at the old host, two at the new one", told, n, hosts)
			}
		})
	}
}

// A delivery that waits for its turn is not sent to an upstream that was removed. It becomes a dead letter after some
// time.
func TestWhatWaitsIsNotSentToWhatIsGone(t *testing.T) {
	for _, told := range []bool{false, true} {
		var host atomic.Value
		host.Store("old.test")
		play(t, seldom(), func(s *site) { s.moving(&host) }, func(s *site) {
			for range 3 {
				s.accept(message("x"))
			}
			s.sleep(time.Minute)
			host.Store("")
			if told {
				s.w.Moved()
			}
			s.sleep(20 * time.Minute)
			if n := len(s.times()); n != 1 || s.dead[delivery.Gone] != 2 {
				t.Errorf("told %v: %d were sent, dead %v; want one sent, before, and the others given up", told, n, s.dead)
			}
		})
	}
}

// After Moved, a delivery does not wait for the limit of a replaced upstream.
func TestWhatWaitsLeavesTheOldLine(t *testing.T) {
	var now atomic.Pointer[weir.Upstream]
	play(t, seldom(), func(s *site) {
		now.Store(s.u)
		s.w.Sender = func(string) delivery.Sender {
			return &delivery.HTTP{Upstream: now.Load(), URL: &url.URL{Scheme: "http", Host: "a.test"}, Base: s}
		}
	}, func(s *site) {
		for range 3 {
			s.accept(message("x"))
		}
		s.sleep(time.Minute)
		next, err := weir.New("a", weir.Policy{}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		now.Store(next)
		s.w.Moved()
		s.sleep(2 * time.Second)
		if n := s.counts(delivery.Completed); n != 3 {
			t.Errorf("%d of 3 were delivered, want all: no limit is left", n)
		}
	})
}

// A Sender that embeds an HTTP and is created for each delivery does not differ from the previous one.
func TestASenderThatEmbedsOneIsTheSame(t *testing.T) {
	type own struct{ delivery.HTTP }
	play(t, weir.Policy{}, func(s *site) {
		was := s.w.Sender
		s.w.Sender = func(upstream string) delivery.Sender {
			if h, ok := was(upstream).(*delivery.HTTP); ok {
				return &own{*h}
			}
			return nil
		}
	}, func(s *site) {
		d := s.accept(message("x"))
		s.sleep(time.Second)
		s.is(d.ID, delivery.Completed, 1)
	})
}
