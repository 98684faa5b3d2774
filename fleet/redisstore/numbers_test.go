package redisstore_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// By default Lua prints 14 digits of a number, but an instant has 16.
func TestNumbersAreExact(t *testing.T) {
	s, clock, advance := driven(t)
	f := startFull(s)
	clock.Store(1_772_964_000_123_457)
	odd := bucketOf("b", 999_999_937, time.Hour, 999_999_937) // prime: its weights are large and odd
	m := fleet.NewMemory(func() time.Time { return time.UnixMicro(clock.Load()) })
	for i := range 200 {
		for _, cost := range []int64{1, 7, 123_456_789, 999_999_937, 1 << 40, math.MaxInt64} {
			a, b := ask(claim(odd, cost)), ask(claim(odd, cost))
			a.Settle = []fleet.Settlement{{Rule: odd, Key: "k", Owe: cost / 7}}
			b.Settle = a.Settle
			take(t, f, a)
			take(t, m, b)
			x, y := a.Grants[0], b.Grants[0]
			x.Mark, y.Mark = fleet.Mark{}, fleet.Mark{}
			if a.Now != b.Now || a.Granted != b.Granted || x != y {
				t.Fatalf("step %d, cost %d: granted %d and %d\n%+v\n%+v", i, cost, a.Granted, b.Granted, x, y)
			}
		}
		advance(time.Duration(i) * 33_333_333 * time.Microsecond)
	}
}

func TestMarkOfAGroupKeepsItsMicroseconds(t *testing.T) {
	s, clock, advance := driven(t)
	clock.Store(1_772_964_000_123_457)
	b := claim(bucketOf("b", 1, time.Microsecond, 10), 1)
	left(t, s, b)
	advance(unknownFor)
	left(t, s, b)
	advance(3 * time.Microsecond)
	if got := left(t, s, b); got != 3 {
		t.Errorf("%d left 3us after nobody can hold a part any more, want 3", got)
	}
}
