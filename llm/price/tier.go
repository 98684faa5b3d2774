package price

import (
	"maps"
	"math"
	"math/bits"
	"strings"
)

// A Tier is the price of a service tier: separate prices, or the list prices times a factor. The zero Tier has the list
// prices.
type Tier struct {
	Factor Factor  // 0 means 1
	Prices *Prices // replaces the list prices; nil means that Factor applies
}

// A Factor multiplies list prices, in millionths.
type Factor int64

// of returns an amount times the factor, rounded up.
func (f Factor) of(a Amount) Amount {
	const one = 1e6
	if a <= 0 {
		return a
	}
	high, low := bits.Mul64(uint64(a), uint64(f))
	low, carry := bits.Add64(low, one-1, 0)
	if high += carry; high >= one {
		return math.MaxInt64
	}
	if n, _ := bits.Div64(high, low, one); n <= math.MaxInt64 {
		return Amount(n)
	}
	return math.MaxInt64
}

// tier returns the tier with that name, or the zero Tier if it has the list prices. Vertex AI names its tiers
// ON_DEMAND_FLEX and so on. OpenAI renamed priority to fast.
func (r *Row) tier(name string) Tier {
	name = strings.TrimPrefix(strings.ToLower(name), "on_demand_")
	if t, ok := r.Tiers[name]; ok || name != "fast" {
		return t
	}
	return r.Tiers["priority"]
}

// with adds the table's tiers that the row does not have.
func (t Table) with(row Row) Row {
	if len(row.Tiers) == 0 {
		row.Tiers = t.tiers
		return row
	}
	tiers := maps.Clone(t.tiers)
	if tiers == nil {
		return row
	}
	maps.Copy(tiers, row.Tiers)
	row.Tiers = tiers
	return row
}
