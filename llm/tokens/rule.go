package tokens

import (
	"iter"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// Amounts has tokens by the unit of the limits that count them.
type Amounts struct {
	Tokens int64 // unit "tokens"
	Input  int64 // unit "input_tokens"
	Output int64 // unit "output_tokens"
}

// Of returns the amount of a unit. It returns false for an unknown unit.
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

// All iterates over the units and their amounts.
func (a Amounts) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		_ = yield("tokens", a.Tokens) && yield("input_tokens", a.Input) && yield("output_tokens", a.Output)
	}
}

// A Rule specifies how a provider counts a call against its token limits: the amount before the answer, and the amount
// after it.
type Rule uint8

const (
	// Plain counts input and output. It is the rule for all providers without a known rule.
	Plain Rule = iota

	// ByMax is OpenAI's rule: at least the output that the request allows counts, even if unused. The sources are users
	// (community.openai.com, threads 360359 and 381878), and Azure's limits work like this. No page of OpenAI's was
	// available as a source.
	ByMax

	// Apart is Anthropic's rule. It has separate limits for input and output. Input read from the cache does not count
	// for most models, and max_tokens does not count as output. For the latter, the source (platform.claude.com, "Rate
	// limits") was not available, and tokenswise.com (2026) says that max_tokens counts. Learned lengths are between the
	// two.
	Apart

	// InputOnly is Gemini's rule: only input counts against its limit of tokens per minute. The page to check is
	// ai.google.dev, "Rate limits". It was not read.
	InputOnly

	// UpFront is Bedrock's rule: input and max_tokens count before the answer, and unused tokens are returned after it.
	// Input read from the cache does not count then. The page to check is "How tokens are counted in Amazon Bedrock" in
	// the Bedrock user guide. Only the start of it was read, in a copy of November 2026.
	UpFront

	// UpFront5 is like UpFront, but one output token counts as five. The same page says this of Claude 4. It is assumed
	// for all versions since 3.7 to be safe.
	UpFront5
)

// RuleFor returns the rule by which a family's provider counts a model.
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

// Reserve returns the amounts to take from limits before a call.
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
		// The provider counts the output five times only when it is written. Reserving less would exceed the limit while
		// answers are in flight.
		a.Tokens = max(e.Most(), e.Input+5*e.Output)
	}
	return a
}

// Settle returns the final amounts of a call. Without valid usage they are the reserved amounts.
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
