package gateway

import (
	"bytes"
	"net/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
)

const (
	// mostOutput is the longest answer of any model, in tokens. A request that allows more cannot cost more.
	mostOutput = 128 << 10

	// usualMost is the longest answer of a request that sets no maximum, unless longer ones are usual.
	usualMost = 16 << 10
)

// addDollars adds the expected and the largest cost of the call to its costs, if a limit counts dollars. A model without
// a price has costs below 0.
func (x *exchange) addDollars(costs map[string]int64) {
	if !x.d.o.Dollars || !x.bills() {
		return
	}
	row, ok := x.d.o.Prices.Find(x.model())
	if !ok {
		costs[limit.USD], costs[limit.USDMost] = -1, -1
		return
	}
	e := x.expected()
	costs[limit.USD] = price.Micro(row.Expected(llm.Usage{Input: e.Input, Output: e.Output}))
	output := min(e.Max, mostOutput)
	if e.Max == 0 {
		output = max(usualMost, e.Output)
	}
	costs[limit.USDMost] = price.Micro(row.Most(e.Input+e.Input/4, output, x.tiers))
}

// MostOf returns the largest cost of the output of a usual call that sets no maximum, in millionths of a dollar.
func MostOf(row price.Row) int64 { return price.Micro(row.Most(0, usualMost, false)) }

// tierWords are in every request that asks for a service tier.
var tierWords = [...][]byte{[]byte("service_tier"), []byte("serviceTier"), []byte("speed"), []byte("inference_geo"), []byte("performanceConfig")}

// asksTier reports whether a body may ask for a service tier.
func asksTier(body []byte) bool {
	for _, w := range tierWords {
		if bytes.Contains(body, w) {
			return true
		}
	}
	return false
}

// bills reports whether providers bill the call.
func (x *exchange) bills() bool {
	switch x.route.Operation {
	case other, "count_tokens":
		return false
	}
	return x.request != nil || x.guessed // otherwise it has no body
}

// model returns the model of the request, as the price table has it.
func (x *exchange) model() string {
	if x.request == nil {
		return x.route.Model
	}
	return x.request.Model
}

// spent adds the cost of an answer to its usage, if a limit counts dollars.
func (m *meter) spent(used map[string]int64, cost price.Amount, priced bool) {
	if m.x.d.o.Dollars && priced {
		used[limit.USD] = price.Micro(cost)
	}
}

// announceBudgets sets the header with what is left of the budgets of the upstream and of the caller.
func (c *conduct) announceBudgets(h http.Header, of []weir.LimitLevel) {
	if !c.x.d.o.Dollars {
		return
	}
	if c.grant != nil {
		of = append(c.grant.permit.Budgets(), of...)
	}
	if v := refuse.Budgets(of); v != "" {
		h.Set(refuse.BudgetHeader, v)
	}
}
