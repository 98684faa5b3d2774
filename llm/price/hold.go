package price

import "github.com/seed1158cd35/weir/llm"

// early returns the row with the prices of long prompts from 10% below their bound on, because the length of a prompt is
// an estimate.
func (r *Row) early() *Row {
	if r.Above == 0 {
		return r
	}
	row := *r
	row.Above -= row.Above / 10
	return &row
}

// Expected returns the cost of a call before it is made, from its expected usage.
func (r *Row) Expected(u llm.Usage) Amount { return r.early().Cost(u) }

// Most returns the largest cost of a call with these tokens, with the complete input written to the provider's dearest
// cache. tiers reports that the call may have a service tier: all factors of the row apply then.
func (r *Row) Most(input, output int64, tiers bool) Amount {
	row, u := r.early(), llm.Usage{Input: input, Output: output}
	prices := &row.Prices
	if row.Above > 0 && input > row.Above {
		prices = &row.Long
	}
	most := prices.dearest(u)
	if !tiers {
		return most
	}
	for _, t := range row.Tiers {
		if t.Prices != nil {
			most = max(most, t.Prices.dearest(u))
		}
	}
	for _, t := range row.Tiers {
		if t.Prices == nil && t.Factor > 1e6 {
			most = t.Factor.of(most)
		}
	}
	return most
}

// dearest returns the largest cost of a usage at the prices.
func (p *Prices) dearest(u llm.Usage) Amount {
	return times(u.Input, max(p.Input, p.CacheRead, p.CacheWrite, p.WriteHour)).Add(times(u.Output, p.Output))
}
