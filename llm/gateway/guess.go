package gateway

import (
	"unsafe"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// expected returns the estimated cost of the call. It computes the estimate on first use, because a cached answer needs
// none.
func (x *exchange) expected() tokens.Estimate {
	if !x.guessed && x.request != nil {
		x.estimate = x.guess()
	}
	x.guessed = true
	return x.estimate
}

func (x *exchange) guess() tokens.Estimate {
	q := x.request
	said := q.Prompt()
	p := tokens.Prompt{Messages: int(said.Messages), Numbers: said.Numbers}
	p.Texts = func(yield func(string) bool) {
		for _, b := range q.Texts() {
			if !yield(unsafe.String(unsafe.SliceData(b), len(b))) { // the estimator keeps no text, and the text does not change while it is counted
				return
			}
		}
	}
	for _, m := range said.Media {
		switch m.Kind {
		case llm.Image:
			p.Images = append(p.Images, tokens.Image{Bytes: m.Bytes, Low: m.Detail == "low"})
		case llm.Audio:
			p.Audio += m.Bytes
		case llm.Video:
			p.Video += m.Bytes
		default:
			p.PDF += m.Bytes
		}
	}
	return x.d.o.Tokens.Estimate(q.Family, q.Model, p, q.MaxOutput)
}

// rule returns how the provider counts the call.
func (x *exchange) rule() tokens.Rule { return tokens.RuleFor(x.route.Family, x.keys[Model]) }

// used returns the usage for limits that count by a rule. It omits units that stay as reserved. OpenAI counts
// max_tokens, so that reservation stays and cannot exceed what a limit holds. The reservation of an incomplete answer
// also stays, unless the counted usage is higher.
func (x *exchange) used(rule tokens.Rule, u llm.Usage, whole bool) map[string]int64 {
	a := rule.Settle(x.expected(), u)
	used := units(a)
	if rule == tokens.ByMax && a.Tokens > u.Total() {
		delete(used, "tokens")
	}
	if whole {
		return used
	}
	for unit, reserved := range units(rule.Reserve(x.expected())) {
		if used[unit] <= reserved {
			delete(used, unit)
		}
	}
	return used
}

// reserved returns the amounts that are charged before the answer.
func (x *exchange) reserved() map[string]int64 { return units(x.rule().Reserve(x.expected())) }

// units returns amounts by the names of the limits' units.
func units(a tokens.Amounts) map[string]int64 {
	m := make(map[string]int64, 3)
	for unit, n := range a.All() {
		m[unit] = n
	}
	return m
}
