package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/sim"
)

var errLate = errors.New("late")

type key struct{}

func TestTimeoutEndsInVirtualTime(t *testing.T) {
	w := newWorld(t, 1)
	c := w.Clock()
	w.Go(func() {
		ctx, cancel := c.WithTimeout(background, time.Minute, errLate)
		defer cancel()
		wrapped := context.WithValue(ctx, key{}, 1)
		child, stop := context.WithCancel(wrapped)
		defer stop()
		if at, ok := c.Deadline(child); at != time.Minute || !ok {
			t.Errorf("deadline %v, %v; want 1m", at, ok)
		}
		if err := c.Sleep(wrapped, time.Hour); err != errLate || w.Now() != time.Minute {
			t.Errorf("sleep: %v at %v, want %v at 1m", err, w.Now(), errLate)
		}
		for _, ctx := range []context.Context{ctx, wrapped, child} {
			select {
			case <-ctx.Done():
			default:
				t.Errorf("%v: Done is open", ctx)
			}
			if ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != errLate {
				t.Errorf("%v: %v because of %v", ctx, ctx.Err(), context.Cause(ctx))
			}
		}
	})
	run(t, w)
}

func TestEarlierDeadlineOfAnAncestorHolds(t *testing.T) {
	w := newWorld(t, 1)
	c := w.Clock()
	w.Go(func() {
		outer, cancel := c.WithTimeout(background, time.Second, errLate)
		defer cancel()
		inner, cancel := c.WithTimeout(context.WithValue(outer, key{}, 1), time.Hour, errors.New("not this"))
		defer cancel()
		if at, _ := c.Deadline(inner); at != time.Second {
			t.Errorf("deadline %v, want 1s", at)
		}
		if err := c.Sleep(inner, time.Minute); err != errLate || inner.Err() != context.DeadlineExceeded {
			t.Errorf("sleep: %v, err: %v", err, inner.Err())
		}
	})
	run(t, w)
}

func TestTimeoutOfNoTimeHasEnded(t *testing.T) {
	c := newWorld(t, 1).Clock()
	for _, d := range []time.Duration{0, -1, -1 << 63} {
		ctx, cancel := c.WithTimeout(background, d, errLate)
		if ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != errLate {
			t.Errorf("timeout %v: %v because of %v", d, ctx.Err(), context.Cause(ctx))
		}
		cancel()
	}
}

func TestNoDeadlineIsNone(t *testing.T) {
	c := newWorld(t, 1).Clock()
	endless, cancel := c.WithTimeout(background, 1<<63-1, nil)
	defer cancel()
	foreign, cancel := context.WithDeadline(background, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	defer cancel()
	for _, ctx := range []context.Context{background, endless, foreign} {
		if at, ok := c.Deadline(ctx); ok {
			t.Errorf("%v: deadline %v", ctx, at)
		}
	}
}

func TestSleepReturnsAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	c := w.Clock()
	w.Go(func() {
		ctx, cancel := context.WithCancelCause(background)
		cancel(errLate)
		if err := c.Sleep(ctx, time.Second); err != errLate {
			t.Errorf("in an ended context: %v", err)
		}
		if err := c.Sleep(ctx, 0); err != nil {
			t.Errorf("for no time: %v", err)
		}
	})
	if run(t, w); w.Now() != 0 {
		t.Errorf("it took %v", w.Now())
	}
}

// Canceling a context wakes its sleepers in the order in which they went to sleep, whatever contexts lie between.
func TestCancelWakesInOrder(t *testing.T) {
	for range 100 {
		w := sim.New(1)
		c := w.Clock()
		root, cancelRoot := context.WithCancelCause(background)
		top, _ := c.WithTimeout(root, time.Hour, nil)
		var got []int
		for i := range 30 {
			w.Go(func() {
				ctx := top
				if i%3 > 0 {
					own, cancel := c.WithTimeout(context.WithValue(ctx, key{}, i), time.Minute, nil)
					defer cancel()
					ctx = own
				}
				if i%3 > 1 {
					own, cancel := context.WithCancel(ctx)
					defer cancel()
					ctx = own
				}
				if err := c.Sleep(ctx, time.Minute); err != errLate {
					t.Errorf("goroutine %d woke with %v", i, err)
				}
				got = append(got, i)
			})
		}
		w.Go(func() {
			sleep(w, time.Second)
			cancelRoot(errLate)
		})
		run(t, w)
		var want []int
		for i := range 30 {
			want = append(want, i)
		}
		slices.SortStableFunc(want, func(a, b int) int { return rank(a) - rank(b) })
		if !slices.Equal(got, want) || w.Now() != time.Second {
			t.Fatalf("woke at %v in order %v, want %v", w.Now(), got, want)
		}
	}
}

func TestCancelOfATimeoutWakesItsSleepers(t *testing.T) {
	w := newWorld(t, 1)
	c := w.Clock()
	ctx, cancel := c.WithTimeout(background, time.Hour, nil)
	var got []string
	for i := range 3 {
		w.Go(func() { got = append(got, fmt.Sprint(i, c.Sleep(ctx, time.Minute), w.Now())) })
	}
	w.Go(func() {
		sleep(w, time.Second)
		cancel()
		cancel()
	})
	run(t, w)
	want := []string{"0 context canceled 1s", "1 context canceled 1s", "2 context canceled 1s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The end of a foreign parent is visible immediately.
func TestEndOfAForeignParentShows(t *testing.T) {
	c := newWorld(t, 1).Clock()
	parent, cancel := context.WithCancelCause(background)
	a, _ := c.WithTimeout(parent, time.Hour, nil)
	b, _ := c.WithTimeout(a, time.Minute, nil)
	child, stop := context.WithCancel(b)
	defer stop()
	cancel(errLate)
	for i, ctx := range []context.Context{b, a, child} {
		if ctx.Err() != context.Canceled || context.Cause(ctx) != errLate {
			t.Errorf("context %d: %v because of %v", i, ctx.Err(), context.Cause(ctx))
		}
	}
	if late, _ := c.WithTimeout(a, time.Hour, nil); context.Cause(late) != errLate {
		t.Errorf("a timeout below an ended one: %v", context.Cause(late))
	}
}

// A script of sleeps, timeouts and cancels has the same result in a world as in real time, where it runs in a bubble.
func TestWorldAgreesWithRealTime(t *testing.T) {
	for seed := range uint64(1000) {
		var real, virtual []string
		w := sim.New(seed)
		w.Go(func() { virtual = script(w.Clock(), seed) })
		run(t, w)
		synctest.Test(t, func(t *testing.T) { real = script(clock.System, seed) })
		if !slices.Equal(real, virtual) {
			t.Fatalf("seed %d:\nreal    %q\nvirtual %q", seed, real, virtual)
		}
	}
}

// script creates nested contexts, ends some, sleeps on others, and logs the results. No two instants in it are the
// same.
func script(c clock.Clock, seed uint64) (log []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	begin := c.Now()
	all := []context.Context{background}
	var cancels []context.CancelFunc
	defer func() {
		for _, f := range cancels {
			f()
		}
	}()
	unique := time.Duration(0)
	for i := range 30 {
		parent := all[r.IntN(len(all))]
		unique++
		d := time.Duration(r.IntN(100))*time.Millisecond + unique
		switch r.IntN(6) {
		case 0:
			ctx, cancel := c.WithTimeout(parent, d, fmt.Errorf("timeout %d", i))
			all, cancels = append(all, ctx), append(cancels, cancel)
		case 1:
			ctx, cancel := context.WithCancelCause(parent)
			all, cancels = append(all, ctx), append(cancels, func() { cancel(fmt.Errorf("cancel %d", i)) })
		case 2:
			all = append(all, context.WithValue(parent, key{}, i))
		case 3:
			if len(cancels) > 0 {
				cancels[r.IntN(len(cancels))]()
				_ = c.Sleep(background, unique) // so that every goroutine notices
			}
		case 4:
			err := c.Sleep(parent, d)
			log = append(log, fmt.Sprint("slept ", err, " ", c.Now()-begin))
			if err != nil {
				_ = c.Sleep(background, unique) // the same
			}
		case 5:
			at, ok := c.Deadline(parent)
			if ok {
				at -= begin
			}
			log = append(log, fmt.Sprint(parent.Err(), " ", context.Cause(parent), " ", at, ok, parent.Value(key{})))
		}
	}
	return log
}

// rank returns the wake-up rank of a goroutine of TestCancelWakesInOrder: a context of the clock notifies contexts
// below it before its own sleepers, and the others are found later.
func rank(i int) int { return []int{1, 0, 2}[i%3] }

// The context in Do is created lazily. The clock's methods create it.
func TestDeadlineWithinDo(t *testing.T) {
	w := newWorld(t, 1)
	u, err := weir.New("api", weir.Policy{Timeouts: weir.Timeouts{Attempt: time.Minute}}, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		t.Fatal(err)
	}
	w.Go(func() {
		sleep(w, time.Second)
		_, _ = weir.Do(background, u, weir.Call{}, func(ctx context.Context) (int, error) {
			if at, ok := w.Clock().Deadline(ctx); at != 61*time.Second || !ok {
				t.Errorf("deadline %v, %v; want 1m1s", at, ok)
			}
			if err := w.Clock().Sleep(ctx, time.Hour); err != weir.ErrAttemptTimeout || w.Now() != 61*time.Second {
				t.Errorf("woke at %v with %v", w.Now(), err)
			}
			return 0, nil
		})
	})
	run(t, w)
}
