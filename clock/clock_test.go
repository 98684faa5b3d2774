package clock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const year = 365 * 24 * time.Hour

var errLeft = errors.New("left")

// Instants come from the monotonic clock and are not negative, for any wall time at the start, also in a bubble.
func TestStartIsMonotonicAndLongAgo(t *testing.T) {
	bubble := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, wall := range []int{1906, 1970, 1979, 1985, 1999, 2000, 2026, 2100, 2156} {
		now := time.Now()
		now = now.Add(time.Date(wall, 1, 2, 0, 0, 0, 0, time.UTC).Sub(now.Round(0)))
		got := before(now)
		if !strings.Contains(got.String(), "m=") {
			t.Errorf("in %d: start %v has no monotonic reading", wall, got)
		}
		if d := now.Sub(got); d < 20*year {
			t.Errorf("in %d: the first instant is %v, want 20 years at least", wall, d)
		}
		if d := bubble.Sub(got.Round(0)); wall <= 2026 && d < 10*year {
			t.Errorf("in %d: a bubble begins at instant %v, want 10 years at least", wall, d)
		}
	}
}

func TestSystemStartIsMonotonic(t *testing.T) {
	if !strings.Contains(start.String(), "m=") {
		t.Errorf("start %v has no monotonic reading", start)
	}
	if now := System.Now(); now < 20*year {
		t.Errorf("now is %v, want 20 years at least", now)
	}
}

func TestNowFollowsTheBubble(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		last := System.Now()
		if last < 10*year {
			t.Fatalf("a bubble begins at instant %v, want 10 years at least", last)
		}
		for i := range 1000 {
			d := time.Duration(r.Int64N(int64(time.Hour)))
			if err := System.Sleep(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			now := System.Now()
			if now-last != d {
				t.Fatalf("seed %d, step %d: %v passed, want %v", seed, i, now-last, d)
			}
			last = now
		}
	})
}

func TestNowNeverRunsBackwards(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := System.Now()
			for range 10_000 {
				now := System.Now()
				if now < last {
					t.Errorf("%v after %v", now, last)
				}
				last = now
			}
		})
	}
	wg.Wait()
}

func TestSleepReturnsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := System.Now()
		time.AfterFunc(3*time.Second, func() { cancel(errLeft) })
		if err := System.Sleep(ctx, time.Minute); err != errLeft {
			t.Errorf("got %v, want the cause", err)
		}
		if took := System.Now() - begin; took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
		if err := System.Sleep(ctx, time.Minute); err != errLeft {
			t.Errorf("a context that has ended: got %v, want the cause", err)
		}
	})
}

func TestSleepOfNothingReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := System.Now()
		for _, d := range []time.Duration{0, -1, -year} {
			if err := System.Sleep(t.Context(), d); err != nil || System.Now() != begin {
				t.Errorf("%v: slept until %v, %v", d, System.Now()-begin, err)
			}
		}
	})
}

func TestDeadlineIsAnInstant(t *testing.T) {
	if at, ok := System.Deadline(context.Background()); ok {
		t.Errorf("the background has the deadline %v", at)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		at, ok := System.Deadline(ctx)
		if left := at - System.Now(); !ok || left != 5*time.Second {
			t.Errorf("got %v, %v, want 5s from now", left, ok)
		}
	})
	early := System.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	late := System.Now()
	if at, ok := System.Deadline(ctx); !ok || at < early+time.Hour || at > late+time.Hour {
		t.Errorf("outside a bubble: got %v, want between %v and %v", at, early+time.Hour, late+time.Hour)
	}
}

func TestWithTimeoutEndsWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := System.Now()
		ctx, cancel := System.WithTimeout(t.Context(), 5*time.Second, errLeft)
		defer cancel()
		if at, ok := System.Deadline(ctx); !ok || at != begin+5*time.Second {
			t.Errorf("deadline %v, %v, want 5s from now", at-begin, ok)
		}
		<-ctx.Done()
		if took := System.Now() - begin; took != 5*time.Second || context.Cause(ctx) != errLeft || ctx.Err() != context.DeadlineExceeded {
			t.Errorf("ended after %v with %v because of %v", took, ctx.Err(), context.Cause(ctx))
		}
	})
}

func ExampleClock() {
	begin := System.Now()
	_ = System.Sleep(context.Background(), time.Millisecond)
	fmt.Println(System.Now()-begin >= time.Millisecond)
	// Output: true
}

// Wall returns the same as time.Now, and differences are in wall time.
func TestWall(t *testing.T) {
	look := func(t *testing.T) {
		before, now, after := time.Now(), System.Now(), time.Now()
		if got := System.Wall(now); got.Before(before.Round(0).Add(-time.Millisecond)) || got.After(after.Round(0).Add(time.Millisecond)) || got != got.Round(0) {
			t.Errorf("it is between %v and %v, and the wall shows %v", before, after, got)
		}
		if d := System.Wall(now + time.Hour).Sub(before.Round(0)); d < time.Hour-time.Millisecond || d > time.Hour+time.Second {
			t.Errorf("in an hour it will be %v later", d)
		}
	}
	look(t)
	synctest.Test(t, look)
}
