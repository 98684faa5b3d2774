package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sim"
)

func newWorld(t testing.TB, seed uint64) *sim.World {
	w := sim.New(seed)
	t.Cleanup(w.Close)
	return w
}

func run(t testing.TB, w *sim.World) {
	t.Helper()
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

var background = context.Background()

// sleep sleeps in a goroutine in which nothing ends the sleep early.
func sleep(w *sim.World, d time.Duration) {
	if err := w.Clock().Sleep(background, d); err != nil {
		panic(err)
	}
}

func TestTimeJumpsToTheEarliestSleeper(t *testing.T) {
	w := newWorld(t, 1)
	var got []string
	for _, s := range []time.Duration{3, 1, 2, 1} {
		w.Go(func() {
			sleep(w, s*time.Hour)
			got = append(got, fmt.Sprintf("%v at %v", s, w.Now()))
		})
	}
	run(t, w)
	want := []string{"1ns at 1h0m0s", "1ns at 1h0m0s", "2ns at 2h0m0s", "3ns at 3h0m0s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEqualInstantsGoInTheOrderOfAsking(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := sim.New(seed)
		type turn struct{ at, asked int }
		var got []turn
		asked := 0
		for range 1 + r.IntN(20) {
			w.Go(func() {
				for range r.IntN(5) {
					asked++
					mine := asked
					sleep(w, time.Duration(1+r.IntN(3)))
					got = append(got, turn{int(w.Now()), mine})
				}
			})
		}
		run(t, w)
		inOrder := slices.IsSortedFunc(got, func(a, b turn) int {
			if a.at != b.at {
				return a.at - b.at
			}
			return a.asked - b.asked
		})
		if !inOrder {
			t.Fatalf("seed %d: got %v, want order of instant, then of asking", seed, got)
		}
	}
}

func TestGoroutinesMayStartOthers(t *testing.T) {
	w := newWorld(t, 1)
	var ends []time.Duration
	var grow func(depth int)
	grow = func(depth int) {
		sleep(w, time.Second)
		if depth > 0 {
			w.Go(func() { grow(depth - 1) })
			w.Go(func() { grow(depth - 1) })
		}
		ends = append(ends, w.Now())
	}
	w.Go(func() { grow(3) })
	run(t, w)
	if len(ends) != 15 || ends[14] != 4*time.Second {
		t.Errorf("%d goroutines, the last ended at %v; want 15, 4s", len(ends), ends[len(ends)-1])
	}
}

func TestRunUntilStopsAndGoesOn(t *testing.T) {
	w := newWorld(t, 1)
	n := 0
	w.Go(func() {
		for range 10 {
			sleep(w, time.Second)
			n++
		}
	})
	for _, c := range []struct {
		until time.Duration
		want  int
	}{{3 * time.Second, 3}, {3500 * time.Millisecond, 3}, {4 * time.Second, 4}} {
		if err := w.RunUntil(c.until); err != nil || n != c.want || w.Now() != c.until {
			t.Errorf("until %v: %d steps at %v, error %v; want %d steps", c.until, n, w.Now(), err, c.want)
		}
	}
	if run(t, w); n != 10 || w.Now() != 10*time.Second {
		t.Errorf("in the end %d steps at %v, want 10 at 10s", n, w.Now())
	}
}

func TestRunFindsThoseWhoNeverWake(t *testing.T) {
	w := newWorld(t, 1)
	for range 2 {
		w.Go(func() { sleep(w, 1<<63-1) })
	}
	w.Go(func() { sleep(w, time.Second) })
	err := w.Run()
	if !errors.Is(err, sim.ErrDeadlock) || !strings.Contains(err.Error(), "2 in the function at world_test.go:") {
		t.Errorf("got %v, want a deadlock of 2 goroutines of world_test.go", err)
	}
}

func TestCancelWakesASleeperWhoWouldSleepForEver(t *testing.T) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancelCause(background)
	stop := errors.New("stop")
	var got error
	w.Go(func() { got = w.Clock().Sleep(ctx, 1<<63-1) })
	w.Go(func() {
		sleep(w, time.Minute)
		cancel(stop)
	})
	if run(t, w); got != stop || w.Now() != time.Minute {
		t.Errorf("got %v at %v, want %v at 1m", got, w.Now(), stop)
	}
}

func TestPanicComesOutOfRun(t *testing.T) {
	w := newWorld(t, 1)
	mine := errors.New("mine")
	w.Go(func() {
		sleep(w, time.Second)
		panic(mine)
	})
	defer func() {
		p, ok := recover().(*sim.Panic)
		if !ok || !errors.Is(p, mine) || !strings.Contains(string(p.Stack), "TestPanicComesOutOfRun") {
			t.Errorf("got %v, want a Panic with its stack", p)
		}
	}()
	_ = w.Run()
	t.Error("Run returned")
}

func TestGoexitEndsTheCallerOfRun(t *testing.T) {
	w := newWorld(t, 1)
	ended, returned := make(chan struct{}), false
	sub := &testing.T{}
	w.Go(func() { sub.FailNow() })
	go func() {
		defer close(ended)
		_ = w.Run()
		returned = true
	}()
	<-ended
	if returned || !sub.Failed() {
		t.Errorf("Run returned: %v, failed: %v; want false, true", returned, sub.Failed())
	}
}

func TestCloseRunsWhatWasDeferred(t *testing.T) {
	w := sim.New(1)
	var ended []int
	for i := range 5 {
		w.Go(func() {
			defer func() { ended = append(ended, i) }()
			sleep(w, time.Hour)
			t.Error("a goroutine went on after Close")
		})
	}
	if err := w.RunUntil(time.Minute); err != nil {
		t.Fatal(err)
	}
	w.Go(func() { t.Error("a goroutine began after Close") })
	w.Close()
	w.Close()
	if !slices.Equal(ended, []int{0, 1, 2, 3, 4}) {
		t.Errorf("deferred functions of %v ran, want those of 0 to 4", ended)
	}
}

func TestSleepOutsideOfTheWorldPanics(t *testing.T) {
	w := newWorld(t, 1)
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "World.Go") {
			t.Errorf("panic %q, want one that names World.Go", v)
		}
	}()
	_ = w.Clock().Sleep(background, 1)
}

func TestOneSeedOneWorld(t *testing.T) {
	draw := func(seed uint64) uint64 { return sim.New(seed).Rand().Uint64() }
	if first, again := draw(1), draw(1); first != again || first == draw(2) {
		t.Error("the seed does not decide the chance")
	}
}

func TestTheWallBeginsWithTheYear2000(t *testing.T) {
	w := newWorld(t, 1)
	if got, want := w.Clock().Wall(36*time.Hour), time.Date(2000, 1, 2, 12, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
