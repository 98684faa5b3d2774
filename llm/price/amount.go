package price

import (
	"math"
	"math/bits"
	"strconv"
)

// An Amount is money, in millionths of a millionth of a US dollar: prices are in
// dollars for a million tokens and have up to six decimals, so what a token costs is a
// whole number of them and sums are exact. It holds up to 9.2 million dollars; sums
// stop there.
type Amount int64

// Dollar is one US dollar.
const Dollar Amount = 1e12

// Add is a + b, or as much as an Amount can hold.
func (a Amount) Add(b Amount) Amount {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	if b < 0 && a < math.MinInt64-b {
		return math.MinInt64
	}
	return a + b
}

// Dollars is the amount as a number that is fit to be shown, not to be added up.
func (a Amount) Dollars() float64 { return float64(a) / float64(Dollar) }

// String reads "0.001250 USD": exact, with six decimals or as many more as it takes.
func (a Amount) String() string {
	b, n := make([]byte, 0, 32), uint64(a)
	if a < 0 {
		b, n = append(b, '-'), -n
	}
	b = append(strconv.AppendUint(b, n/uint64(Dollar), 10), ".000000000000"...)
	end := len(b)
	for i, part := end-1, n%uint64(Dollar); part > 0; i, part = i-1, part/10 {
		b[i] += byte(part % 10)
	}
	for least := end - 6; end > least && b[end-1] == '0'; {
		end--
	}
	return string(append(b[:end], " USD"...))
}

// times is what so many tokens cost at a price for one.
func times(tokens int64, each Amount) Amount {
	if tokens <= 0 || each <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(tokens), uint64(each))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return Amount(low)
}
