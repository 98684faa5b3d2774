package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Returned units pay debts, in whatever order the two come. Otherwise they would be granted to other calls although
// they were used already.
func TestWhatComesBackPaysDebts(t *testing.T) {
	const cases = 3000
	for range cases {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		l := limit.Limit{Name: "tokens", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1000}}
		if r.IntN(3) == 0 {
			l = limit.Limit{Name: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: 1000 * time.Second}}
		}
		m, err := limit.New(0, l)
		if err != nil {
			t.Fatal(err)
		}
		type turn struct {
			limit.Turn
			cost int64
		}
		var turns []turn
		level := int64(1000)
		for range 1 + r.IntN(12) {
			switch n := 1 + r.Int64N(300); {
			case r.IntN(2) == 0 && n <= level:
				got, wait, ok := m.Take(0, n)
				if !ok || wait != 0 {
					t.Fatalf("seed %d: %d of %d were refused for %v", seed, n, level, wait)
				}
				turns = append(turns, turn{got, n})
				level -= n
			case r.IntN(2) == 0 && len(turns) > 0:
				i := r.IntN(len(turns))
				back := min(n, turns[i].cost)
				m.Back(0, turns[i].Turn, back)
				turns = append(turns[:i], turns[i+1:]...)
				level += back
			default:
				m.Owe(0, n)
				level -= n
			}
			if got := m.Look(0).Left; got != max(0, level) {
				t.Fatalf("seed %d (%v): %d are left, want %d", seed, l.Shape, got, max(0, level))
			}
			if _, _, ok := m.Take(0, max(0, level)+1); ok {
				t.Fatalf("seed %d (%v): more than the %d that are left went", seed, l.Shape, level)
			}
		}
		if wait := m.Ask(0, 1); l.Shape == limit.Bucket && level < 0 && wait != time.Duration(1-level)*time.Second {
			t.Fatalf("seed %d: a debt of %d makes the next wait for %v", seed, -level, wait)
		}
	}
}

// A rolling limit counts usage beyond a reservation at the instant of its use.
func TestARollingDebtEndsWithItsWindow(t *testing.T) {
	m, err := limit.New(0, limit.Limit{Name: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	m.Try(0, 100)
	m.Owe(4*time.Second, 1_000_000)
	for _, c := range []struct {
		at   time.Duration
		left int64
	}{{5 * time.Second, 0}, {63 * time.Second, 0}, {64 * time.Second, 100}} {
		if got := m.Look(c.at).Left; got != c.left {
			t.Errorf("at %v %d are left, want %d", c.at, got, c.left)
		}
	}
}
