package bucket

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// metered contains rates at the ends of the valid range, and ordinary ones.
var metered = append([]Rate{
	{30_000_000, time.Minute, 0}, {30_000_000, time.Minute, 500_000}, {64e9 - 1, time.Second, 0}, {64e9 - 1, time.Second, 1},
	{1, 365 * 24 * time.Hour, 4}, {4, 365 * 24 * time.Hour, 18}, {1_000_000, 365 * 24 * time.Hour, 1_000_000},
	{1, 1500, 1}, {3, 7, 5}, {1, 1, 1}, {63, 1, 1 << 56}, {1, 1, 1 << 57}, {1 << 62, 1 << 57, 1 << 57}, {1, 999, 1 << 47}, {1, 513, 1 << 47},
	{1, 1 << 57, 1}, {math.MaxInt64, math.MaxInt64, 1}, {math.MaxInt64 - 1, math.MaxInt64, 1 << 40}, {1<<62 - 1, 1<<61 - 1, 1 << 50},
}, rates...)

func meteredRate(rng *rand.Rand) Rate {
	if rng.IntN(4) == 0 {
		return metered[rng.IntN(len(metered))]
	}
	return anyRate(rng)
}

// perMicro returns the rate of a meter in units per microsecond, and exact the rate of a Rate.
func perMicro(m Meter) *big.Rat { return big.NewRat(m.Drain, m.Unit) }

func exact(r Rate) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(r.Amount, int64(r.Per)), big.NewRat(1000, 1))
}

func TestAMeterIsNeverFasterThanItsRate(t *testing.T) {
	for _, r := range metered {
		if err := r.Validate(); err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		if err := checkMeter(r); err != nil {
			t.Error(err)
		}
	}
	cases(t, 20_000, func(rng *rand.Rand) error { return checkMeter(meteredRate(rng)) })
}

func checkMeter(r Rate) error {
	m, full := MeterOf(r), min(r.Full(), mostCap)
	if m.Unit <= 0 || m.Drain <= 0 || m.Drain > mostCap || m.Cap > 2*mostCap || m.Cap != m.Unit*full || m.Most() != full {
		return fmt.Errorf("%v: meter %+v of %d", r, m, full)
	}
	got, want := perMicro(m), exact(r)
	if got.Cmp(want) > 0 {
		return fmt.Errorf("%v: meter %+v has %s units a microsecond, want %s at most", r, m, got, want)
	}
	lost := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(got, want))
	most := new(big.Rat).Add(big.NewRat(full, 1<<46), big.NewRat(1, 1<<30))
	if lost.Cmp(most) > 0 {
		return fmt.Errorf("%v: meter %+v loses %s of the rate, want %s at most", r, m, lost.FloatString(12), most.FloatString(12))
	}
	return nil
}

func TestMetersOfOrdinaryLimitsAreExact(t *testing.T) {
	for _, r := range []Rate{
		{100, time.Second, 0}, {3000, time.Second, 0}, {5, time.Minute, 5}, {250_000, time.Minute, 250_000}, {1_000_000, time.Minute, 1_000_000},
		{30_000_000, time.Minute, 0}, {1, time.Hour, 10}, {25, 24 * time.Hour, 25}, {10, 250 * time.Millisecond, 10}, {7, 1500 * time.Nanosecond, 3}, {1, 333, 1},
	} {
		if got := perMicro(MeterOf(r)); got.Cmp(exact(r)) != 0 {
			t.Errorf("%v: %s units a microsecond, want %s", r, got, exact(r))
		}
	}
}

// A vessel is a meter in exact arithmetic.
type vessel struct {
	rate, level *big.Rat
	at          int64
}

func (v *vessel) drain(now int64) {
	if now <= v.at {
		return
	}
	v.level.Sub(v.level, new(big.Rat).Mul(v.rate, big.NewRat(now-v.at, 1)))
	if v.level.Sign() < 0 {
		v.level.SetInt64(0)
	}
	v.at = now
}

func (v *vessel) add(n int64) { v.level.Add(v.level, new(big.Rat).SetInt64(n)) }

// TestAMeterIsAVessel checks free units and waits against exact arithmetic with the meter's rate.
func TestAMeterIsAVessel(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := meteredRate(rng)
		m, s := MeterOf(r), Fill{}
		v := vessel{perMicro(m), new(big.Rat), 0}
		burst, now := new(big.Rat).SetInt64(m.Most()), int64(1e15)
		for range 30 {
			now += rng.Int64N(2*m.Empty(Fill{0, m.Cap})+2) * rng.Int64N(2)
			s = m.Drained(s, now)
			v.drain(now)
			room := new(big.Rat).Sub(burst, v.level)
			whole := new(big.Int).Quo(room.Num(), room.Denom())
			if got := m.Free(s); whole.Cmp(big.NewInt(got)) != 0 {
				return fmt.Errorf("%v: %d free, want %s", r, got, room.FloatString(6))
			}
			n := rng.Int64N(m.Most()) + 1
			if err := checkWait(&m, s, n); err != nil {
				return fmt.Errorf("%v: %w", r, err)
			}
			if n = min(n, m.Free(s)); n > 0 {
				s.Weight += n * m.Unit
				v.add(n)
			}
		}
		return nil
	})
}

func checkWait(m *Meter, s Fill, n int64) error {
	wait := m.Wait(s, n)
	if free := m.Free(m.Drained(s, s.At+wait)); free < n {
		return fmt.Errorf("%d of %d units free after waiting %d us", free, n, wait)
	}
	if wait > 0 && m.Free(m.Drained(s, s.At+wait-1)) >= n {
		return fmt.Errorf("%d units free a microsecond before %d us", n, wait)
	}
	empty := m.Empty(s)
	if left := m.Drained(s, s.At+empty).Weight; left != 0 {
		return fmt.Errorf("%d left when the vessel should be empty", left)
	}
	if empty > 0 && m.Drained(s, s.At+empty-1).Weight == 0 {
		return fmt.Errorf("empty a microsecond before it should be")
	}
	return nil
}

// TestDoublesComputeTheSame checks the computation of a script, which has doubles only. They suffice as long as no
// weight exceeds 2^53. Debts and returned units stay below it.
func TestDoublesComputeTheSame(t *testing.T) {
	cases(t, 5000, func(rng *rand.Rand) error {
		r := meteredRate(rng)
		m := MeterOf(r)
		s := Fill{rng.Int64N(1 << 51), rng.Int64N(16*m.Cap + 1)}
		now := s.At + rng.Int64N(2*m.Empty(Fill{0, m.Cap})+2)
		unit, drain, full := float64(m.Unit), float64(m.Drain), float64(m.Cap)
		weight := math.Max(0, float64(s.Weight)-float64(now-s.At)*drain)
		if got := m.Drained(s, now); float64(got.Weight) != weight {
			return fmt.Errorf("%v: %+v is %d at %d, in doubles %.0f", r, s, got.Weight, now, weight)
		}
		s = m.Drained(s, now)
		if free := math.Floor(math.Max(0, full-weight) / unit); float64(m.Free(s)) != free {
			return fmt.Errorf("%v: %d free, in doubles %.0f", r, m.Free(s), free)
		}
		n := 1 + rng.Int64N(m.Most())
		short := math.Max(0, weight+float64(n)*unit-full)
		// A quotient may be wrongly rounded to an integer. A remainder is exact.
		wait := (short - math.Mod(short, drain)) / drain
		if math.Mod(short, drain) > 0 {
			wait++
		}
		if float64(m.Wait(s, n)) != wait {
			return fmt.Errorf("%v: wait %d, in doubles %.0f", r, m.Wait(s, n), wait)
		}
		return nil
	})
}

func TestConvertLosesNothing(t *testing.T) {
	cases(t, 5000, func(rng *rand.Rand) error {
		a, b := MeterOf(meteredRate(rng)), MeterOf(meteredRate(rng))
		weight := upTo(rng, a.Cap)
		got := b.Convert(weight, a.Unit)
		least := new(big.Rat).Mul(big.NewRat(weight, a.Unit), big.NewRat(b.Unit, 1))
		if a.Unit == b.Unit {
			least = big.NewRat(weight, 1)
		}
		if got == mostWeight {
			return nil // more than 32 bursts
		}
		most := new(big.Rat).Add(least, big.NewRat(5, 1)) // two for rounding, two for its errors, and one for the ceiling
		if x := new(big.Rat).SetInt64(got); x.Cmp(least) < 0 || x.Cmp(most) > 0 {
			return fmt.Errorf("%d of %d became %d of %d, want %s", weight, a.Unit, got, b.Unit, least.FloatString(3))
		}
		return nil
	})
	b := MeterOf(Rate{Amount: 1, Per: time.Hour, Burst: 1})
	if got := b.Convert(1<<50, 1); got != mostWeight || got < 32*b.Cap {
		t.Errorf("an enormous weight became %d, want %d", got, int64(mostWeight))
	}
}
