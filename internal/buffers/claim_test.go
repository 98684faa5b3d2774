package buffers

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// come takes the memory of a body in four pieces, and returns it.
func come(t *testing.T, b *Budget, n int64, patience time.Duration, pause func()) error {
	c := b.Claim(n, 1<<20)
	defer func() { c.Give(c.Has()) }()
	var has int64
	for _, next := range []int64{min(n, 4<<10), min(n, 64<<10), min(n, 1<<20), n} {
		if next <= has {
			continue
		}
		if err := c.Grow(t.Context(), next, patience); err != nil {
			return err
		}
		pause()
		c.Give(has)
		has = next
	}
	return nil
}

// A claim that declares its size completes without a refusal, whatever other claims hold and want.
func TestNoClaimsWaitForEachOther(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		const total = 64 << 20
		b := newBudget(total)
		b.Store(total)
		var wg sync.WaitGroup
		for i := range 400 {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 5 {
					n := 1 + random.Int64N(Small)
					if random.IntN(2) == 0 {
						n = Small + 1 + random.Int64N(total/2-2*Small-1)
					}
					err := come(t, b, n, time.Hour, func() { time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) })
					if err != nil {
						t.Errorf("seed %d: %d bytes: %v", seed, n, err)
					}
				}
			})
		}
		wg.Wait()
		if used, most, _ := b.Use(); used != total/4 || most > total || b.large != 0 || len(b.line) != 0 {
			t.Errorf("seed %d: %d are held, %d of them by large ones, %d at most; %d wait", seed, used, b.large, most, len(b.line))
		}
	})
}

// A thousand claims for the largest bodies that send nothing do not delay other claims.
func TestWhatIsAnnouncedIsThereForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(64 << 20)
		for range 100 {
			if err := b.Claim(26<<20, 1<<20).Grow(t.Context(), 4<<10, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if err := come(t, b, 26<<20, time.Second, func() {}); err != nil || time.Since(begin) > 0 {
			t.Errorf("a body that comes: %v after %v", err, time.Since(begin))
		}
	})
}

// A body that does not declare its size becomes a large one when it grows.
func TestABodyThatTurnsOutToBeLarge(t *testing.T) {
	b := newBudget(64 << 20)
	c := b.Claim(0, 0)
	var has int64
	for _, next := range []int64{64 << 10, Small, 4 << 20, 16 << 20} {
		c.Expect(next, has)
		if err := c.Grow(t.Context(), next, 0); err != nil {
			t.Fatal(err)
		}
		c.Give(has)
		has = next
	}
	if b.large != has {
		t.Errorf("%d are held by large ones, of %d", b.large, has)
	}
	c.Expect(64<<20, has)
	if err := c.Grow(t.Context(), 64<<20, time.Hour); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than there can be: %v", err)
	}
	if c.Give(c.Has()); b.used != 0 || b.large != 0 {
		t.Errorf("%d stay held, %d by large ones", b.used, b.large)
	}
}

// Stored data can use at most a quarter, which is not available to claims.
func TestWhatIsStoredIsOfTheBudget(t *testing.T) {
	b := newBudget(64 << 20)
	if n := b.Store(1 << 40); n != 16<<20 {
		t.Errorf("%d bytes are stored", n)
	}
	for range 48 {
		if !b.Take(Small) {
			t.Fatal("there is no room beside what is stored")
		}
	}
	if b.Take(1) || !errors.Is(b.Fits(1), ErrFull) || !errors.Is(b.Fits(1<<40), ErrTooLarge) {
		t.Error("what is stored is there for others, too")
	}
	if n := b.Store(1); n != 1 || !b.Take(Small) || b.Fits(Small) != nil {
		t.Errorf("what is stored no more is not there for others: %d", n)
	}
}

// Bodies of unknown length have half arrived and use up the share of large bodies. Each completes, one after the other, and a
// quarter of the budget stays free for small bodies all the time.
func TestBodiesThatGrowDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := newBudget(64 * mib)
		begin := time.Now()
		var all, half sync.WaitGroup
		half.Add(15)
		for range 15 {
			all.Go(func() {
				c := b.Claim(0, 0)
				defer func() { c.Give(c.Has()) }()
				grow := func(n int64) {
					has := c.Has()
					c.Expect(n, has)
					if err := c.Grow(t.Context(), n, 10*time.Second); err != nil {
						t.Error(err)
						return
					}
					c.Give(has)
					if used, _, _ := b.Use(); used > 48*mib {
						t.Errorf("%d are held", used)
					}
				}
				grow(mib)
				grow(2 * mib)
				half.Done()
				half.Wait()
				grow(4 * mib)
				c.Whole()
			})
		}
		all.Wait()
		if d := time.Since(begin); d > 0 {
			t.Errorf("they waited %v", d)
		}
		if used, _, turned := b.Use(); used != 0 || turned != 0 || b.large != 0 || b.first != nil {
			t.Errorf("%d are held, %d of large ones, %d were turned away", used, b.large, turned)
		}
	})
}
