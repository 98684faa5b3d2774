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
	Cap   int64 // of a full burst, about 2^50 at most
}

// mostCap leaves room in a double's 53 binary digits for what is added to it.
const mostCap = 1 << 50

// MeterOf is the meter of a rate, which must be valid. Its rate is at most that
// of r, and lower by less than one part in 2^50/(burst in units).
func MeterOf(r Rate) Meter {
	per := max(1, int64(r.Per)/1000)
	d := gcd(r.Amount, per)
	m := Meter{Unit: per / d, Drain: r.Amount / d}
	if int64(r.Per)%1000 != 0 { // periods that are no whole microseconds
		m.Drain = r.Amount
		m.Unit = ceilDiv(int64(r.Per), 1000)
	}
	full := r.Full()
	if hi, lo := bits.Mul64(uint64(m.Unit), uint64(full)); hi > 0 || lo > mostCap {
		unit := max(1, mostCap/full) // as fine as there is room for
		m.Drain = max(1, mulDiv(unit, m.Drain, m.Unit))
		m.Unit = mulDivUp(m.Drain, int64(r.Per), r.Amount, 1000)
	}
	m.Cap = m.Unit * full
	return m
}

// A Fill is how full a meter was at an instant, in microseconds.
type Fill struct{ At, Weight int64 }

// Drained is the fill as of now. Time that runs backwards drains nothing.
func (m *Meter) Drained(s Fill, now int64) Fill {
	if now <= s.At {
		return s
	}
	return Fill{now, s.Weight - min(s.Weight, m.drained(now-s.At))}
}

func (m *Meter) drained(us int64) int64 {
	hi, lo := bits.Mul64(uint64(us), uint64(m.Drain))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Free is how many units fit into a fill.
func (m *Meter) Free(s Fill) int64 { return max(0, m.Cap-s.Weight) / m.Unit }

// Wait is how many microseconds after s.At n units fit. They must not be more than
// the burst.
func (m *Meter) Wait(s Fill, n int64) int64 {
	return ceilDiv(max(0, s.Weight+n*m.Unit-m.Cap), m.Drain)
}

// Empty is how many microseconds after s.At nothing is left in the meter.
func (m *Meter) Empty(s Fill) int64 { return ceilDiv(s.Weight, m.Drain) }

// Back is the weight of n units that come back, of which the last made the meter
// as full as mark: that part of them that would still be in it. The rest has run
// out meanwhile and would be counted twice.
func (m *Meter) Back(mark Fill, n, now int64) int64 {
	left := mark.Weight
	if now > mark.At {
		left -= min(left, m.drained(now-mark.At))
	}
	return min(n*m.Unit, left)
}

// Convert is the weight of a fill of a meter with another unit, rounded up. It is
// computed in doubles as scripts do.
func (m *Meter) Convert(weight, unit int64) int64 {
	if unit == m.Unit || unit <= 0 {
		return weight
	}
	return int64(math.Ceil(float64(weight)/float64(unit)*float64(m.Unit))) + 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// mulDiv is a*b/c, rounded down; the result must fit.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// mulDivUp is a*b/(c*d), rounded up; the result must fit.
func mulDivUp(a, b, c, d int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	if h2 == 0 && hi < l2 {
		q, r := bits.Div64(hi, lo, l2)
		if r > 0 {
			q++
		}
		return int64(q)
	}
	return int64(math.Ceil(float64(a)*float64(b)/(float64(c)*float64(d)))) + 1
}
