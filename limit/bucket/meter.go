package bucket

import (
	"math"
	"math/bits"
)

// A Meter is a token bucket for stores: a vessel that each unit makes fuller by
// Unit and that loses Drain in every microsecond. All of it is whole numbers that
// a double holds exactly, so that a script in a store computes the same, and none
// lets more through than the rate it was made of.
//
// A Line does the same for one process and can do more: it keeps those who wait
// in order while the rate changes.
type Meter struct {
	Unit  int64
	Drain int64
	Cap   int64 // of a full burst, 2^48 at most
}

// mostCap leaves room in a double's 53 binary digits for debts of some bursts and
// for what came back.
const mostCap = 1 << 47

// MeterOf is the meter of a rate, which must be valid. It is exact if its numbers
// are small enough, as those of ordinary limits are; otherwise its rate is lower
// than that of r, by less than one part in 2^46/(burst in units) and at most one in
// 2^30. It holds 2^47 units at most. More than a burst does not go within a
// microsecond.
func MeterOf(r Rate) Meter {
	full := min(r.Full(), mostCap)
	m := exactly(r, full)
	if m.Unit == 0 {
		m = nearly(r, full)
	}
	m.Cap = m.Unit * full
	return m
}

// exactly is the meter with the lowest whole numbers, nothing if they are too large.
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

// nearly is a meter as fine as there is room for. The drain is rounded down, and
// the unit, which is made of what the drain came to, up.
func nearly(r Rate, full int64) (m Meter) {
	each := (r.Amount/int64(r.Per) + 1) * 1000 // units in a microsecond, at most
	fine := min(mostCap/full, mostCap/each)
	m.Drain = max(1, mulDiv(fine*1000, r.Amount, int64(r.Per)))
	m.Unit = max(1, ceilDiv(mulDivUp(m.Drain, int64(r.Per), r.Amount), 1000))
	return m
}

// A Fill is how full a meter was at an instant, in microseconds.
type Fill struct{ At, Weight int64 }

// Drained is the fill as of now. Time that runs backwards drains nothing.
func (m *Meter) Drained(s Fill, now int64) Fill {
	if now <= s.At {
		return s
	}
	return Fill{now, s.Weight - min(s.Weight, m.Drains(now-s.At))}
}

// Drains is how much runs out in so many microseconds.
func (m *Meter) Drains(us int64) int64 {
	hi, lo := bits.Mul64(uint64(us), uint64(m.Drain))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Free is how many units fit into a fill.
func (m *Meter) Free(s Fill) int64 { return max(0, m.Cap-s.Weight) / m.Unit }

// Most is how many units fit into an empty meter.
func (m *Meter) Most() int64 { return max(0, m.Cap) / m.Unit }

// Wait is how many microseconds after s.At n units fit. They must not be more than
// Most.
func (m *Meter) Wait(s Fill, n int64) int64 {
	return ceilDiv(max(0, s.Weight+n*m.Unit-m.Cap), m.Drain)
}

// Empty is how many microseconds after s.At nothing is left in the meter.
func (m *Meter) Empty(s Fill) int64 { return ceilDiv(s.Weight, m.Drain) }

// mostWeight is half the largest number up to which a double holds all whole ones: what
// a store adds to a weight stays whole in it.
const mostWeight = 1 << 52

// Convert is the weight of a fill of a meter with another unit, rounded up, and at
// most 2^53, which are 32 bursts at least. It is computed in doubles as scripts do.
func (m *Meter) Convert(weight, unit int64) int64 {
	if unit == m.Unit || unit <= 0 || weight <= 0 {
		return weight
	}
	w := math.Ceil(float64(weight)/float64(unit)*float64(m.Unit)) + 2 // two roundings, of less than one each
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

// mulDiv is a*b/c, rounded down; the result must fit.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// mulDivUp is a*b/c, rounded up; the result must fit.
func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(q)
}
