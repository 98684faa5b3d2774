package gateway

import (
	"unsafe"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// expected is what the call is expected to cost. Nobody asks about one whose answer is kept.
func (x *exchange) expected() tokens.Estimate {
	if !x.guessed && x.request != nil {
		x.estimate = x.guess()
	}
	x.guessed = true
	return x.estimate
}

// guess is what the request is expected to cost.
func (x *exchange) guess() tokens.Estimate {
	q := x.request
	said := q.Prompt()
	p := tokens.Prompt{Messages: int(said.Messages), Numbers: said.Numbers}
	p.Texts = func(yield func(string) bool) {
		for _, b := range q.Texts() {
			if !yield(unsafe.String(unsafe.SliceData(b), len(b))) { // nobody keeps a text, and it does not change while it is counted
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

// rule is how the provider counts the call.
func (x *exchange) rule() tokens.Rule { return tokens.RuleFor(x.route.Family, x.keys[Model]) }

// used is what a call has used of limits that count by a rule. What OpenAI counts of
// max_tokens stays reserved, and is not more than a limit holds. So does what was reserved for
// an answer that did not come to its end, unless more than that has passed by.
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

// reserved is what the call is charged before its answer.
func (x *exchange) reserved() map[string]int64 { return units(x.rule().Reserve(x.expected())) }

// units are amounts as limits know them.
func units(a tokens.Amounts) map[string]int64 {
	m := make(map[string]int64, 3)
	for unit, n := range a.All() {
		m[unit] = n
	}
	return m
}
