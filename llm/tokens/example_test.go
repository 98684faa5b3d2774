package tokens_test

import (
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
)

func ExampleEstimator() {
	var e tokens.Estimator
	prompt := tokens.Prompt{
		Texts:    slices.Values([]string{"You are a helpful assistant.", "How many legs has a spider?"}),
		Messages: 2,
	}
	est := e.Estimate(llm.OpenAI, "gpt-4o", prompt, 100)
	fmt.Println(est.Input, est.Output, est.Most())

	// The answer has arrived and reports its usage.
	e.Observe(est, 22, 12)
	for v := range e.All() {
		fmt.Println(v.Model, v.Calls, v.Mean)
	}
	// Output:
	// 22 100 122
	// gpt-4o 1 12
}

func ExampleRule() {
	est := tokens.Estimate{Input: 1000, Output: 200, Max: 4096}
	rule := tokens.RuleFor(llm.Converse, "anthropic.claude-3-haiku-20240307-v1:0")
	fmt.Println(rule, rule.Reserve(est).Tokens)

	used := llm.Usage{Input: 1010, Output: 150, Said: true}
	fmt.Println(rule.Settle(est, used).Tokens)
	// Output:
	// up_front 5096
	// 1160
}
