package tokens

import (
	"iter"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// Amounts are tokens by the unit of the limit that counts them.
type Amounts struct {
	Tokens int64 // "tokens"
	Input  int64 // "input_tokens"
	Output int64 // "output_tokens"
}

// Of is the amount of a unit, and whether it is one of these.
func (a Amounts) Of(unit string) (int64, bool) {
	switch unit {
	case "tokens":
		return a.Tokens, true
	case "input_tokens":
		return a.Input, true
	case "output_tokens":
		return a.Output, true
	}
	return 0, false
}

// All is each unit with its amount.
func (a Amounts) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		_ = yield("tokens", a.Tokens) && yield("input_tokens", a.Input) && yield("output_tokens", a.Output)
	}
}

// A Rule is how a provider counts a call against its limits of tokens: what it takes
// before the answer, and what it leaves taken after it.
type Rule uint8

const (
	// Plain counts what is read and written. It stands for all providers that do not
	// say otherwise.
	Plain Rule = iota

	// ByMax is OpenAI's: at least what the request allows the answer counts, used or
	// not. Users report so (community.openai.com, threads 360359 and 381878), and
	// Azure's limits work like it; no page of OpenAI's own could be read for this.
	ByMax

	// Apart is Anthropic's: separate limits of input, where what is read from the cache
	// does not count with most models, and of output, where max_tokens does not count. For the
	// second, the page itself (platform.claude.com, "Rate limits") could not be read, and
	// tokenswise.com says in 2026 that it does; learnt lengths lie between.
	Apart

	// InputOnly is Gemini's: its limit of tokens a minute is one of input.
	// ai.google.dev, "Rate limits", is the page to check; it was not read for this.
	InputOnly

	// UpFront is Bedrock's: input and max_tokens are taken before the answer, what was
	// not used comes back, and reads from the cache do not count then. The page to check
	// is "How tokens are counted in Amazon Bedrock" of the Bedrock user guide; of it only
	// the beginning could be read, in a copy, in November 2026.
	UpFront

	// UpFront5 is the same for models one token of whose output counts as five: Claude 4
	// by the same page, and all since 3.7 are taken for such, to be on the safe side.
	UpFront5
)

// RuleFor is how the provider of a family counts a model.
func RuleFor(family llm.Family, model string) Rule {
	switch family {
	case llm.Anthropic:
		return Apart
	case llm.Gemini:
		return InputOnly
	case llm.Converse, llm.Invoke:
		if burnsFive(model) {
			return UpFront5
		}
		return UpFront
	case llm.OpenAI, llm.Responses:
		if nameOf(family, model).maker == openAI {
			return ByMax
		}
	}
	return Plain
}

func burnsFive(model string) bool {
	if !strings.Contains(model, "claude") {
		return false
	}
	major, minor := version(model)
	return major > 3 || major == 3 && minor >= 7
}

// Reserve is what to take from limits before a call.
func (r Rule) Reserve(e Estimate) Amounts {
	a := Amounts{Tokens: e.Total(), Input: e.Input, Output: e.Output}
	switch r {
	case ByMax:
		a.Tokens = max(a.Tokens, e.Max)
	case InputOnly:
		a.Tokens = e.Input
	case UpFront:
		a.Tokens = e.Most()
	case UpFront5:
		// The provider itself takes five times the output only as it is written; who
		// takes less before would go over while answers are on their way.
		a.Tokens = max(e.Most(), e.Input+5*e.Output)
	}
	return a
}

// Settle is what a call has cost in the end. An answer that did not say costs what was
// reserved.
func (r Rule) Settle(e Estimate, u llm.Usage) Amounts {
	if !u.Said || !Possible(u) {
		return r.Reserve(e)
	}
	cached := min(max(u.CacheRead, 0), u.Input)
	a := Amounts{Tokens: u.Total(), Input: u.Input, Output: u.Output}
	switch r {
	case ByMax:
		a.Tokens = max(a.Tokens, e.Max)
	case Apart:
		a.Input -= cached
		a.Tokens -= cached
	case InputOnly:
		a.Tokens = u.Input
	case UpFront:
		a.Tokens -= cached
	case UpFront5:
		a.Tokens += 4*u.Output - cached
	}
	return a
}

var names = [...]string{"plain", "by_max", "apart", "input_only", "up_front", "up_front_5"}

func (r Rule) String() string {
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}
