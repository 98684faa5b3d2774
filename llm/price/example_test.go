package price_test

import (
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
)

func ExampleTable_Cost() {
	used := llm.Usage{Input: 1200, Output: 300, Said: true}
	cost, ok := price.BuiltIn().Cost("us.anthropic.claude-3-haiku-20240307-v1:0", used)
	fmt.Println(cost, ok)
	// Output: 0.000675 USD true
}

func ExampleParse() {
	_, err := price.Parse("prices.yaml", []byte("models:\n  my-llama*: {inputt: 0.1, output: 0.2}\n"))
	mistakes, _ := errors.AsType[price.Errors](err)
	for _, m := range mistakes {
		fmt.Println(m)
	}

	own, _ := price.Parse("prices.yaml", []byte("models:\n  my-llama*: {input: 0.1, output: 0.2}\n"))
	table := own.Over(price.BuiltIn())
	cost, _ := table.Cost("my-llama-70b", llm.Usage{Input: 1_000_000, Said: true})
	fmt.Println(cost)
	// Output:
	// prices.yaml:2:15: models.my-llama*.inputt: unknown field "inputt"; did you mean input?
	// 0.100000 USD
}

func ExampleLedger() {
	l := price.NewLedger(1000)
	l.Add("shop", "ann", "claude-3-haiku", 675*price.Dollar/1_000_000, llm.Usage{Input: 1200, Output: 300})
	for account, totals := range l.All() {
		fmt.Println(account.Tenant, account.User, totals.Calls, totals.Cost)
	}
	// Output: shop ann 1 0.000675 USD
}
