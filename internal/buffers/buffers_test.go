package buffers

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// In any sequence of takes and returns, the used bytes stay within the budget, all return to it, and small claims do not wait
// for large ones.
func TestNoMoreIsHeldThanMayBe(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		const total = 64 << 20
		b := newBudget(total)
		var held, served atomic.Int64
		var wg sync.WaitGroup
		for i := range 300 {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 20 {
					n := random.Int64N(Small)
					if random.IntN(3) == 0 {
						n = Small + random.Int64N(total/2-Small)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Millisecond)
					if err := b.Wait(ctx, n, time.Duration(random.IntN(1000))*time.Millisecond); err == nil {
						if all := held.Add(n); all > total {
							t.Errorf("seed %d: %d bytes are held", seed, all)
						}
						time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
						held.Add(-n)
						b.Give(n)
						served.Add(1)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if used, most, _ := b.Use(); used != 0 || b.large != 0 || len(b.line) != 0 || most == 0 {
			t.Errorf("seed %d: %d are held, %d of them by large ones, %d wait", seed, used, b.large, len(b.line))
		}
		if served.Load() == 0 {
			t.Error("nobody was served")
		}
	})
}

func TestSmallOnesWaitForNoLargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(64 << 20)
		if err := b.Wait(t.Context(), 32<<20, time.Second); err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := b.Wait(t.Context(), 2<<20, time.Second); !errors.Is(err, ErrFull) {
				t.Errorf("a second large one: %v", err)
			}
		}()
		synctest.Wait()
		for range 32 {
			if !b.Take(Small) {
				t.Fatal("a small one waits")
			}
		}
		if err := b.Wait(t.Context(), 40<<20, time.Second); !errors.Is(err, ErrTooLarge) {
			t.Errorf("more than there can be: %v", err)
		}
		time.Sleep(2 * time.Second)
	})
}

// When the budget is exhausted, a small claim gets the bytes that another small one returns, even if an earlier large claim
// still waits.
func TestASmallOneInLinePassesALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(8 << 20)
		if !b.Take(4 << 20) {
			t.Fatal("no room for a large one")
		}
		for range 4 {
			if !b.Take(Small) {
				t.Fatal("no room for a small one")
			}
		}
		large := make(chan error, 1)
		go func() { large <- b.Wait(t.Context(), 2<<20, time.Hour) }()
		synctest.Wait()
		small := make(chan error, 1)
		go func() { small <- b.Wait(t.Context(), Small, time.Second) }()
		synctest.Wait()
		b.Give(Small)
		if err := <-small; err != nil {
			t.Errorf("the small one: %v", err)
		}
		b.Give(4 << 20)
		if err := <-large; err != nil {
			t.Errorf("the large one: %v", err)
		}
	})
}

// A claim that gives up at the moment it gets its bytes keeps or returns them.
func TestWhoLeavesInItsTurnLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(Small)
		for range 200 {
			b.Take(Small)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error)
			go func() { left <- b.Wait(ctx, Small, time.Hour) }()
			synctest.Wait()
			leave()
			b.Give(Small)
			if err := <-left; err == nil {
				b.Give(Small)
			}
			if used, _, _ := b.Use(); used != 0 {
				t.Fatalf("%d bytes stay held", used)
			}
		}
	})
}

func TestTheLimitIsHeeded(t *testing.T) {
	if memory() <= 0 || Bodies.Total() <= 0 || Tables.Total() != Bodies.Total()/2 {
		t.Errorf("limit %d, bodies %d, tables %d", memory(), Bodies.Total(), Tables.Total())
	}
}
