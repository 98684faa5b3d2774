package delivery_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
)

// A redriven delivery is sent immediately, not at the worker's next poll. A dropped one is counted and unblocks its
// order key.
func TestRedrivenByHandGoesAtOnce(t *testing.T) {
	play(t, weir.Policy{}, nil, func(s *site) {
		s.answer = func(int, *http.Request) (int, http.Header) { return 404, nil }
		for _, body := range []string{"one", "two"} {
			if _, _, err := s.w.Accept(s.Context(), message(body)); err != nil {
				s.Fatal(err)
			}
		}
		synctest.Wait()
		s.answer = func(int, *http.Request) (int, http.Header) { return 200, nil }
		time.Sleep(time.Second)
		begin := time.Since(s.start)
		if n, err := s.w.Redrive(s.Context(), delivery.Filter{Reason: delivery.Rejected}, 1); n != 1 || err != nil {
			s.Fatalf("redriven %d: %v", n, err)
		}
		if n, err := s.w.Redrive(s.Context(), delivery.Filter{Reason: delivery.Rejected}, 10); n != 1 || err != nil {
			s.Fatalf("redriven %d: %v", n, err)
		}
		synctest.Wait()
		if s.mu.Lock(); len(s.sent) != 4 || s.sent[3] != begin {
			s.Errorf("sent at %v, redriven at %v", s.sent, begin)
		}
		s.mu.Unlock()

		first, second := message("first"), message("second")
		first.OrderKey, second.OrderKey = "k", "k"
		first.NotBefore = time.Now().Add(time.Hour)
		d, _, err := s.w.Accept(s.Context(), first)
		if err != nil {
			s.Fatal(err)
		}
		if _, _, err := s.w.Accept(s.Context(), second); err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Second)
		begin = time.Since(s.start)
		if n, err := s.w.Drop(s.Context(), delivery.Filter{IDs: []string{d.ID}}, 1); n != 1 || err != nil {
			s.Fatalf("dropped %d: %v", n, err)
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sent) != 5 || s.sent[4] != begin || s.bodies["second"] != 1 || s.dead[delivery.Dropped] != 1 {
			s.Errorf("sent %v, %d dropped", s.sent, s.dead[delivery.Dropped])
		}
	})
}

// A deaf queue records the end of an attempt but returns an error the first time.
type deaf struct {
	delivery.Queue
	said bool
}

func (d *deaf) End(ctx context.Context, ends ...delivery.End) ([]delivery.Claim, error) {
	lost, err := d.Queue.End(ctx, ends...)
	if !d.said && err == nil {
		d.said = true
		return nil, delivery.ErrUncertain
	}
	return lost, err
}

// An end that was recorded although the queue returned an error is not a lost claim.
func TestARecordWhoseAnswerWasLost(t *testing.T) {
	lost, ended := 0, 0
	play(t, weir.Policy{}, func(s *site) {
		s.w.Queue = &deaf{Queue: s.q}
		s.w.Events.Lost = func(*delivery.Delivery) { lost++ }
		s.w.Events.Ended = func(*delivery.Delivery, *delivery.Attempt) { ended++ }
	}, func(s *site) {
		if _, _, err := s.w.Accept(s.Context(), message("one")); err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.sent) != 1 || lost != 0 || ended != 1 {
			s.Errorf("sent %d times, %d recorded, %d lost", len(s.sent), ended, lost)
		}
	})
}

// Upstream.Deliver delivers a request once per key, and refuses it if deliveries are not configured.
func TestUpstreamDelivers(t *testing.T) {
	play(t, weir.Policy{}, nil, func(s *site) {
		u, err := weir.New("a", weir.Policy{}, weir.Options{Deliverer: s.w})
		if err != nil {
			s.Fatal(err)
		}
		defer u.Close()
		r := weir.Request{Method: "POST", Path: "/x", Body: []byte("one"), Key: "k"}
		first, err := u.Deliver(s.Context(), r)
		if err != nil || !first.Fresh || first.Over || first.ID == "" {
			s.Fatalf("%+v, %v", first, err)
		}
		synctest.Wait()
		if again, err := u.Deliver(s.Context(), r); err != nil || again.Fresh || !again.Over || again.ID != first.ID {
			s.Errorf("again: %+v, %v", again, err)
		}
		r.Body = []byte("two")
		if _, err := u.Deliver(s.Context(), r); !errors.Is(err, delivery.ErrKeyReused) {
			s.Errorf("another request: %v", err)
		}
		if _, err := s.u.Deliver(s.Context(), r); !errors.Is(err, weir.ErrNoDeliverer) {
			s.Errorf("without a deliverer: %v", err)
		}
		if s.bodies["one"] != 1 {
			s.Errorf("sent %v", s.bodies)
		}
	})
}
