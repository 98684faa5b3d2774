package gateway_test

import (
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
)

// A model without its own price is charged the default price, and the response is marked with that. A model with its own
// price has no mark.
func TestADefaultPriceSaysThatItIsOne(t *testing.T) {
	own, err := price.Parse("prices.yaml", []byte(`models: {"*": {input: 1000, output: 1000}}`))
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, setup{policy: quick(), options: gateway.Options{Prices: own.Over(price.BuiltIn())}})
	ask := func(model string) string {
		return b.post(completions, `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`).Header.Get(gateway.CostHeader)
	}
	if got := ask("nobodys-model"); !strings.HasSuffix(got, " USD; price=default") || strings.HasPrefix(got, "0.000000 ") {
		t.Errorf("a model without a price: %q", got)
	}
	if got := ask("gpt-4o"); !strings.HasSuffix(got, " USD") {
		t.Errorf("a model with one: %q", got)
	}
}
