package price

import (
	"math"
	"math/bits"
	"strconv"
)

// An Amount is money in 1e-12 US dollars. Prices are dollars per million tokens with up to six decimals. The price of
// one token is therefore a whole number of units, and sums are exact. The maximum is 9.2 million dollars. Sums stop
// there.
type Amount int64

// Dollar is one US dollar.
const Dollar Amount = 1e12

// Add returns a + b, or the largest or smallest Amount if the sum is out of range.
func (a Amount) Add(b Amount) Amount {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	if b < 0 && a < math.MinInt64-b {
		return math.MinInt64
	}
	return a + b
}

// Dollars returns the amount in dollars for display. Do not add such values, because they are rounded.
func (a Amount) Dollars() float64 { return float64(a) / float64(Dollar) }

// String returns for example "0.001250 USD": the exact amount with at least six decimals.
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

// times returns the cost of tokens at a price of each per token.
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

// Micro returns an amount in millionths of a dollar, rounded up.
func Micro(a Amount) int64 {
	const micro = Dollar / 1e6
	n := int64(a / micro)
	if a%micro > 0 {
		n++
	}
	return n
}
