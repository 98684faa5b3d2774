package delivery_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// The Detail of a dead letter names the unavailable upstream by its host, and only if it was unavailable.
func TestADeadLetterSaysWhoWasAway(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	for status, away := range map[int]bool{0: true, 502: true, 503: true, 504: true, 500: false, 501: false, 505: false, 429: false} {
		p := quiet()
		p.Timeouts.Attempt, p.MaxPause = 100*time.Millisecond, time.Millisecond
		play(t, p, func(s *site) { s.w.Schedule = schedule("messaging") }, func(s *site) {
			s.answer = func(int, *http.Request) (int, http.Header) { return status, nil }
			d := s.accept(message("x"))
			r := message("y")
			r.Expires = time.Now().Add(2500 * time.Millisecond) // between the second and the third attempt, for any jitter
			late := s.accept(r)
			s.sleep(10 * time.Minute)
			for _, id := range []string{d.ID, late.ID} {
				got, err := s.q.Get(s.Context(), id)
				if err != nil || got.Status != delivery.Failed || strings.HasPrefix(got.Detail, "a.test service unavailable: ") != away {
					t.Errorf("%d: %s %s, %v", status, got.Status, got.Detail, err)
				}
			}
		})
	}
}
