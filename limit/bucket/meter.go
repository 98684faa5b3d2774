package bucket

import (
	"math"
	"math/bits"
)

// A Meter is a token bucket for stores: a vessel to which each unit adds Unit and that loses Drain per microsecond.
// All numbers are integers that a double represents exactly, so that a script in a store computes the same. No meter
// exceeds the rate from which it was made.
//
// A Line does the same for one process, and also keeps waiting calls in order while the rate changes. A Meter is a value
// and may be shared.
type Meter struct {
	Unit  int64
	Drain int64
	Cap   int64 // of a full burst, at most 2^48
}

// mostCap leaves room in a double's 53 bits for debts of some bursts and for returned units.
const mostCap = 1 << 47

// MeterOf returns the meter of a rate, which must be valid. It is exact if its numbers are small enough, as they are
// for ordinary limits. Otherwise its rate is lower than r, by less than one part in 2^46/(burst in units) and at most
// one in 2^30. It holds at most 2^47 units. It grants at most a burst within a microsecond.
func MeterOf(r Rate) Meter {
	full := min(r.Full(), mostCap)
	m := exactly(r, full)
	if m.Unit == 0 {
		m = nearly(r, full)
	}
	m.Cap = m.Unit * full
	return m
}

// exactly returns the meter with the smallest integers, and the zero Meter if they are too large.
func exactly(r Rate, full int64) (m Meter) {
	d := gcd(r.Amount, int64(r.Per))
	amount, per := r.Amount/d, int64(r.Per)/d
	d = gcd(1000, per) // nanoseconds in a microsecond
	per /= d
	if per <= mostCap/full && amount <= mostCap/(1000/d) {
		m.Unit, m.Drain = per, amount*(1000/d)
	}
	return m
}

// nearly returns a meter with the finest possible resolution. The drain is rounded down. The unit, which is derived
// from the drain, is rounded up.
func nearly(r Rate, full int64) (m Meter) {
	each := (r.Amount/int64(r.Per) + 1) * 1000 // units per microsecond, at most
	fine := min(mostCap/full, mostCap/each)
	m.Drain = max(1, mulDiv(fine*1000, r.Amount, int64(r.Per)))
	m.Unit = max(1, ceilDiv(mulDivUp(m.Drain, int64(r.Per), r.Amount), 1000))
	return m
}

// A Fill is the level of a meter at an instant, in microseconds. A Meter never makes a weight negative.
type Fill struct{ At, Weight int64 }

// Drained returns the fill as of now. If time runs backwards, nothing drains.
func (m *Meter) Drained(s Fill, now int64) Fill {
	if now <= s.At {
		return s
	}
	return Fill{now, s.Weight - min(s.Weight, m.Drains(now-s.At))}
}

// Drains returns how much drains in us microseconds.
func (m *Meter) Drains(us int64) int64 {
	hi, lo := bits.Mul64(uint64(us), uint64(m.Drain))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Free returns how many units fit into a fill.
func (m *Meter) Free(s Fill) int64 { return max(0, m.Cap-s.Weight) / m.Unit }

// Most returns how many units fit into an empty meter.
func (m *Meter) Most() int64 { return max(0, m.Cap) / m.Unit }

// Wait returns how many microseconds after s.At n units fit. If n is more than Most, they fit when the weight is negative
// by the difference.
func (m *Meter) Wait(s Fill, n int64) int64 {
	return ceilDiv(max(0, s.Weight+n*m.Unit-m.Cap), m.Drain)
}

// Empty returns how many microseconds after s.At the meter is empty.
func (m *Meter) Empty(s Fill) int64 { return ceilDiv(max(0, s.Weight), m.Drain) }

// mostWeight is half of the number up to which a double represents all integers: a weight to which a store adds stays
// an integer.
const mostWeight = 1 << 52

// Convert returns the weight of a fill from a meter with another unit, rounded up, and at most 2^53, which is at
// least 32 bursts. It computes in doubles, as scripts do.
func (m *Meter) Convert(weight, unit int64) int64 {
	if unit == m.Unit || unit <= 0 || weight <= 0 {
		return weight
	}
	w := math.Ceil(float64(weight)/float64(unit)*float64(m.Unit)) + 2 // two roundings, each of less than one
	return int64(min(w, mostWeight))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// mulDiv returns a*b/c, rounded down. The result must fit.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// mulDivUp returns a*b/c, rounded up. The result must fit.
func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(q)
}
