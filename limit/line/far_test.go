package line

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A slowing source reports a longer wait at each request.
type slowing struct{ far time.Duration }

func (s *slowing) Ask(time.Duration, time.Duration) Step {
	s.far += ms
	return Step{Kind: Wait, For: s.far}
}

// stand makes n calls wait for a slowing source until an instant, and returns a function that ends their waits.
func (s *slowing) stand(lines *Lines, n int, until time.Duration) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, _ = lines.Wait(ctx, clock.System.Now(), &Call{Asker: s, Until: until}, Spot{Key: "far", Cost: 1})
		})
	}
	return func() { cancel(); wg.Wait() }
}

// However often the wait of the first call grows, calls whose time is not up earlier are not examined. A new call
// that cannot wait as long is then refused.
func TestAFirstFarAwayLooksAtNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, s := NewLines(clock.System, Config{}), &slowing{2 * time.Second}
		begin := clock.System.Now()
		leave := s.stand(lines, 900, begin+time.Hour)
		synctest.Wait()
		if n := testing.AllocsPerRun(100, func() { lines.KickOne(begin, "far") }); n > 0 {
			t.Errorf("%v allocations to tell the first that it has to wait longer, want none", n)
		}
		late := make(chan error, 1)
		go func() {
			_, err := lines.Wait(t.Context(), begin, &Call{Asker: s, Until: begin + s.far + ms/2}, Spot{Key: "far", Cost: 1})
			late <- err
		}()
		synctest.Wait()
		lines.KickOne(begin, "far")
		synctest.Wait()
		if now := clock.System.Now(); now != begin || len(late) != 1 || !errors.Is(<-late, ErrLate) {
			t.Errorf("%v later one that cannot wait so long waits on", now-begin)
		}
		leave()
	})
}

// BenchmarkAFirstFarAway measures a longer wait for the first of the waiting calls.
func BenchmarkAFirstFarAway(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lines, s := NewLines(clock.System, Config{Longest: n, PerFlow: n}), &slowing{2 * time.Second}
			now := clock.System.Now()
			leave := s.stand(lines, n, now+time.Hour)
			for lines.waiting.Load() < int64(n) {
				time.Sleep(time.Millisecond)
			}
			for b.Loop() {
				lines.KickOne(now, "far")
			}
			leave()
		})
	}
}
