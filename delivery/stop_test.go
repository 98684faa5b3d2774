package delivery_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// When the worker stops, attempts under way have the grace to end, unless it is negative or Cut is called. Attempts
// that are given back do not count.
func TestTheGraceOfAttemptsUnderWay(t *testing.T) {
	for name, tt := range map[string]struct{ grace, cut, want time.Duration }{
		"as it ships": {0, 0, 10 * time.Second},
		"its own":     {time.Minute, 0, time.Minute},
		"none":        {-1, 0, 0},
		"cut":         {time.Hour, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, patient(), func(s *site) { s.w.Grace = tt.grace }, func(s *site) {
				s.answer = func(int, *http.Request) (int, http.Header) { return 0, nil }
				d := s.accept(message("x"))
				s.sleep(time.Second)
				begin := time.Now()
				if tt.cut > 0 {
					time.AfterFunc(tt.cut, s.w.Cut)
				}
				s.stop()
				if took := time.Since(begin); took != tt.want {
					t.Errorf("it stopped after %v, want %v", took, tt.want)
				}
				s.is(d.ID, delivery.Queued, 0)
			})
		})
	}
}

// hanging is a queue whose End blocks until its context ends, as on a disk that hangs.
type hanging struct{ delivery.Queue }

func (hanging) End(ctx context.Context, _ ...delivery.End) ([]delivery.Claim, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestWorkerStopsWhileItsQueueDoesNotAnswer(t *testing.T) {
	play(t, patient(), func(s *site) { s.w.Grace, s.w.Queue = time.Second, hanging{s.q} }, func(s *site) {
		s.accept(message("x"))
		s.sleep(time.Second)
		begin := time.Now()
		s.stop()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it stopped after %v", took)
		}
	})
}
