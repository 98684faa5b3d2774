package price

import (
	"maps"
	"math"
	"math/bits"
	"strings"
)

// A Tier is what a service tier costs: other prices, or the list prices times a factor. The zero Tier costs the list prices.
type Tier struct {
	Factor Factor  // 0 means 1
	Prices *Prices // in place of the list prices; nil means that Factor holds
}

// A Factor is a number of millionths by which list prices are multiplied.
type Factor int64

// of is an amount times the factor, rounded up.
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

// tier is the tier of a name, the zero Tier if it costs the list prices. Vertex AI calls its tiers ON_DEMAND_FLEX and so on.
// OpenAI renamed priority to fast.
func (r *Row) tier(name string) Tier {
	name = strings.TrimPrefix(strings.ToLower(name), "on_demand_")
	if t, ok := r.Tiers[name]; ok || name != "fast" {
		return t
	}
	return r.Tiers["priority"]
}

// with is a row with the tiers of the table that it does not name itself.
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
