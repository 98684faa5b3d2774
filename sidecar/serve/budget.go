package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/sidecar/config"
)

const (
	// fewCalls is how many of the largest calls a budget should have room for. In a smaller budget, calls often wait for
	// other calls, and a large part of the budget remains unspent.
	fewCalls = 20

	// mistakenPrice is the price per million tokens above which it was probably meant for fewer tokens.
	mistakenPrice = 1000 * price.Dollar
)

// Warnings returns what is probably wrong with the budgets and prices of a file, although Check accepts them.
func Warnings(file *config.File) (all []string) {
	prices, err := readPrices(file.Prices)
	if err != nil {
		return nil
	}
	for row := range prices.All() {
		if most := row.Most(1e6, 0, false); max(most, row.Most(0, 1e6, false)) > mistakenPrice {
			all = append(all, fmt.Sprintf("%s: the price of %s is more than 1000 dollars per million tokens: check that it is not the price of fewer tokens", file.Prices, row.Model))
		}
	}
	var dearest dearCall
	for _, u := range file.Upstreams {
		c, ok := file.LLM[u.Name]
		if !ok {
			continue
		}
		call := dearestCall(prices, c.Family)
		all = append(all, call.warn(u.Name, u.Policy.Limits)...)
		if c.Callers && call.cost > dearest.cost {
			dearest = call
		}
	}
	if c := file.Callers; c != nil {
		all = append(all, dearest.warn(config.CallersName, c.Policy.Limits)...)
	}
	return all
}

// A dearCall is the largest cost of a call that sets no max_tokens, in millionths of a dollar.
type dearCall struct {
	model string
	cost  int64
}

// dearestCall returns the dearest call to an upstream, of all priced models of its family.
func dearestCall(prices price.Table, f llm.Family) (d dearCall) {
	for row := range prices.All() {
		if cost := gateway.MostOf(row); cost >= d.cost && serves(f, row.Model) {
			d = dearCall{row.Model, cost}
		}
	}
	return d
}

// serves reports whether upstreams of a family usually have a model. All of them may have models of unknown makers.
func serves(f llm.Family, model string) bool {
	for start, families := range map[string][]llm.Family{
		"claude": {llm.Anthropic, llm.Converse, llm.Invoke}, "gemini": {llm.Gemini},
		"gpt": {llm.OpenAI, llm.Responses}, "o3": {llm.OpenAI, llm.Responses},
	} {
		if strings.HasPrefix(model, start) {
			return f == "" || slices.Contains(families, f)
		}
	}
	return true
}

// warn returns a warning for each budget that has too few calls.
func (d dearCall) warn(of string, limits []limit.Limit) (all []string) {
	for _, l := range limits {
		if l.IsBudget() && l.Amount < fewCalls*d.cost {
			all = append(all, fmt.Sprintf("%s: limit %s: %s USD is enough for fewer than %d calls of %s, because a call without max_tokens may cost %s USD: calls will wait for each other, and part of the budget may stay unused; raise the limit, or send max_tokens",
				of, l.Name, limit.Dollars(l.Amount), fewCalls, d.model, limit.Dollars(d.cost)))
		}
	}
	return all
}
