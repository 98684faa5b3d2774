package price

import (
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

// A call costs the price of its service tier, for each provider's name of the tier.
func TestServiceTiersHaveTheirPrices(t *testing.T) {
	table := BuiltIn()
	million := llm.Usage{Input: 1_000_000, Output: 1_000_000, Said: true}
	cached := llm.Usage{Input: 1_000_000, CacheRead: 1_000_000, Said: true}
	long := llm.Usage{Input: 300_000, Output: 1_000_000, Said: true}
	hour := llm.Usage{Input: 1_000_000, CacheWrite: 1_000_000, WriteHour: 400_000, Said: true}
	for _, c := range []struct {
		model, tier string
		used        llm.Usage
		want        string
	}{
		{"gpt-5.2", "", million, "15.750000 USD"},
		{"gpt-5.2", "default", million, "15.750000 USD"},
		{"gpt-5.2", "scale", million, "15.750000 USD"},
		{"gpt-5.2", "flex", million, "7.875000 USD"},
		{"gpt-5.2", "batch", million, "7.875000 USD"},
		{"gpt-5.2", "priority", million, "31.500000 USD"},
		{"gpt-5.2", "fast", million, "31.500000 USD"},
		{"gpt-5.2", "priority", cached, "0.350000 USD"},
		{"gpt-5-mini-2025-08-07", "priority", million, "4.050000 USD"},
		{"gpt-4.1", "Priority", million, "17.500000 USD"},
		{"gpt-4o", "priority", million, "21.250000 USD"},
		{"gpt-4o-mini", "priority", million, "1.250000 USD"},
		{"gpt-4o-mini", "priority", cached, "0.125000 USD"},
		{"o3-mini", "priority", million, "5.500000 USD"}, // has no such tier
		{"claude-sonnet-4-5", "standard", million, "18.000000 USD"},
		{"claude-sonnet-4-5", "priority", million, "18.000000 USD"}, // requires a commitment
		{"claude-sonnet-4-5", "batch", million, "9.000000 USD"},
		{"claude-sonnet-4-5", "standard", hour, "4.650000 USD"},
		{"claude-sonnet-4-5", "batch", hour, "2.325000 USD"},
		{"claude-sonnet-4-5", "standard+us", million, "18.000000 USD"}, // older than that price
		{"claude-sonnet-4-6", "standard+us", million, "19.800000 USD"},
		{"claude-opus-4-6", "standard+fast", million, "180.000000 USD"},
		{"claude-opus-4-6", "standard+fast+us", million, "198.000000 USD"},
		{"anthropic.claude-haiku-4-5-20251001-v1:0", "flex", million, "3.000000 USD"},
		{"anthropic.claude-haiku-4-5-20251001-v1:0", "reserved", million, "6.000000 USD"},
		{"gemini-2.5-pro", "standard", long, "15.750000 USD"},
		{"gemini-2.5-pro", "flex", long, "7.875000 USD"},
		{"gemini-2.5-pro", "ON_DEMAND_FLEX", long, "7.875000 USD"},
		{"gemini-2.5-flash", "on_demand_priority", million, "5.040000 USD"},
		{"gemini-2.5-flash", "on_demand", million, "2.800000 USD"},
		{"gemini-2.5-flash", "provisioned_throughput", million, "2.800000 USD"},
		{"gemini-2.5-flash", "a tier of tomorrow", million, "2.800000 USD"},
	} {
		c.used.Tier = c.tier
		if got, ok := table.Cost(c.model, c.used); !ok || got.String() != c.want {
			t.Errorf("%s at %q costs %v (%v), want %s", c.model, c.tier, got, ok, c.want)
		}
	}
}

// A table may override tiers of the table below, for one model or for all.
func TestTiersOfTablesThatLieOverEachOther(t *testing.T) {
	own := parse(t, "tiers: {flex: 0.25, free: 0}\nmodels: {mine: {input: 1, output: 1, tiers: {Fast: 3, flex: 0.75}}, other: {input: 1, output: 1}}\n")
	table := own.Over(BuiltIn())
	used := llm.Usage{Input: 1_000_000, Said: true}
	for _, c := range []struct{ model, tier, want string }{
		{"mine", "flex", "0.750000 USD"}, {"mine", "fast", "3.000000 USD"}, {"mine", "batch", "0.500000 USD"}, {"mine", "free", "0.000000 USD"},
		{"other", "flex", "0.250000 USD"}, {"other", "fast", "1.000000 USD"}, {"gpt-4o", "flex", "0.625000 USD"}, {"gpt-4o", "priority", "4.250000 USD"},
	} {
		used.Tier = c.tier
		if got, _ := table.Cost(c.model, used); got.String() != c.want {
			t.Errorf("%s at %q costs %v, want %s", c.model, c.tier, got, c.want)
		}
	}
	if _, err := Parse("x.yaml", []byte("tiers: {flex: much}\nmodels: {a: {input: 1, output: 1, tiers: 3}}\n")); err == nil {
		t.Error("tiers that are none were taken")
	}
}
