package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// blind is a queue whose Due finds nothing.
type blind struct{ delivery.Queue }

func (blind) Due(context.Context, string, delivery.Mark, int) ([]delivery.Delivery, error) {
	return nil, nil
}

func (blind) Next(context.Context, string, delivery.Mark) (time.Time, bool, error) {
	return time.Time{}, false, nil
}

// A delivery that is accepted while there is capacity is sent immediately, without a scan.
func TestWhatIsAcceptedIsSentWithoutALook(t *testing.T) {
	play(t, plain(), func(s *site) { s.w.Queue = blind{s.q} }, func(s *site) {
		r := message("x")
		r.Header = http.Header{"Title": {"first"}}
		d, _, err := s.w.Accept(s.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.is(d.ID, delivery.Completed, 1)
		if n := len(s.times()); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

// However many deliveries are accepted together, at most Parallel are sent concurrently.
func TestNoMoreAtOnceThanMayBe(t *testing.T) {
	play(t, plain(), func(s *site) { s.w.Parallel = 3 }, func(s *site) {
		s.answer = func(int, *http.Request) (int, http.Header) { time.Sleep(time.Second); return 200, nil }
		for i := range 12 {
			s.accept(message(fmt.Sprint(i)))
		}
		for n := 3; n <= 12; n += 3 {
			synctest.Wait()
			if sent := len(s.times()); sent > n {
				t.Errorf("%d were sent, want %d at most", sent, n)
			}
			s.sleep(time.Second)
		}
	})
}
