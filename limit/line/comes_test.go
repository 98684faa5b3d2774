package line

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A grown asker gets its units at the second request, as from a bound that has grown meanwhile.
type grown struct{ asked int }

func (g *grown) Ask(time.Duration, time.Duration) Step {
	if g.asked++; g.asked < 2 {
		return Step{Kind: Wait, For: time.Hour}
	}
	return Step{Kind: Go}
}

type anHour struct{}

func (anHour) Wait(_, _ time.Duration, _ bool) time.Duration                        { return time.Hour }
func (anHour) Stands(_, _ time.Duration, _ bool) bool                               { return false }
func (anHour) Longer(time.Duration, time.Duration, int, bool) (until time.Duration) { return 0 }

// More calls may go than when the first one asked, although none returned anything and no time has passed.
func TestWhoComesHasTheFirstAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := New(clock.System, anHour{}, [Priorities]int{}), time.Now()
		first := make(chan time.Duration, 1)
		go func() {
			_, err := l.Join(t.Context(), clock.System.Now(), &Call{Asker: &grown{}, Until: clock.System.Now() + time.Hour})
			if err != nil {
				t.Error(err)
			}
			first <- time.Since(begin)
		}()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			_, _ = l.Join(ctx, clock.System.Now(), &Call{Asker: &grown{}, Until: clock.System.Now() + time.Hour})
		}()
		if waited := <-first; waited > time.Minute {
			t.Errorf("the first went after %v, want at once", waited)
		}
		leave()
		synctest.Wait()
	})
}
