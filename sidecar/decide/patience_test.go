package decide

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A patience ends slack after its deadline, or with the request, both for waiting and for polling code.
func TestAPatienceEnds(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now()
			p := newPatience(t.Context(), from.Add(2*time.Second))
			defer p.end()
			if at, ok := p.Deadline(); !ok || !at.Equal(p.until) {
				t.Errorf("its deadline is %v, %v", at, ok)
			}
			if waits {
				<-p.Done()
				if d := time.Since(from); d != 2*time.Second+slack {
					t.Errorf("it ended after %v", d)
				}
			} else {
				time.Sleep(2*time.Second + slack - time.Nanosecond)
				if err := p.Err(); err != nil {
					t.Errorf("early: %v", err)
				}
				time.Sleep(time.Nanosecond)
			}
			if err := p.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it says %v", err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			request, leave := context.WithCancel(t.Context())
			p := newPatience(request, time.Now().Add(time.Hour))
			defer p.end()
			if waits {
				stop := context.AfterFunc(p, func() {}) // as for work in progress
				defer stop()
			}
			leave()
			if waits {
				<-p.Done()
			}
			if err := p.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller has left, and it says %v", err)
			}
		})
	}
}

// A caller that does not wait still gets a decision.
func TestNoPatienceIsAnAskStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatience(t.Context(), time.Now().Add(-time.Hour))
		defer p.end()
		from := time.Now()
		<-p.Done()
		if d := time.Since(from); d != slack {
			t.Errorf("it ended after %v, want %v", d, slack)
		}
	})
}
