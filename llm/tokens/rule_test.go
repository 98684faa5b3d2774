package tokens

import (
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

// The example has 8,000 input tokens, of which 4,000 are from the cache, and 2,000 output tokens of an allowed 32,000.
// 40,000 are reserved and 14,000 stay charged.
func TestBedrockTakesAllUpFront(t *testing.T) {
	est := Estimate{Input: 8000, Output: 2000, Max: 32_000}
	rule := RuleFor(llm.Converse, "us.anthropic.claude-sonnet-4-20250514-v1:0")
	if got := rule.Reserve(est).Tokens; got != 40_000 {
		t.Errorf("%d are reserved, want 40,000", got)
	}
	used := llm.Usage{Input: 8000, CacheRead: 4000, CacheWrite: 1000, Output: 2000, Said: true}
	if got := rule.Settle(est, used).Tokens; got != 14_000 {
		t.Errorf("%d stay taken, want 14,000", got)
	}
}

func TestRules(t *testing.T) {
	est := Estimate{Input: 1000, Output: 300, Max: 4000}
	used := llm.Usage{Input: 1200, CacheRead: 200, Output: 100, Said: true}
	for _, c := range []struct {
		family        llm.Family
		model         string
		want          Rule
		taken, stayed Amounts
	}{
		{llm.OpenAI, "gpt-4o", ByMax, Amounts{4000, 1000, 300}, Amounts{4000, 1200, 100}},
		{llm.OpenAI, "llama-3-70b", Plain, Amounts{1300, 1000, 300}, Amounts{1300, 1200, 100}},
		{llm.Anthropic, "claude-3-haiku-20240307", Apart, Amounts{1300, 1000, 300}, Amounts{1100, 1000, 100}},
		{llm.Gemini, "gemini-2.5-pro", InputOnly, Amounts{1000, 1000, 300}, Amounts{1200, 1200, 100}},
		{llm.Converse, "anthropic.claude-3-5-sonnet-20241022-v2:0", UpFront, Amounts{5000, 1000, 300}, Amounts{1100, 1200, 100}},
		{llm.Invoke, "amazon.nova-lite-v1:0", UpFront, Amounts{5000, 1000, 300}, Amounts{1100, 1200, 100}},
		{llm.Invoke, "anthropic.claude-3-7-sonnet-20250219-v1:0", UpFront5, Amounts{5000, 1000, 300}, Amounts{1500, 1200, 100}},
	} {
		rule := RuleFor(c.family, c.model)
		if rule != c.want {
			t.Errorf("%s: rule %v, want %v", c.model, rule, c.want)
		}
		if got := rule.Reserve(est); got != c.taken {
			t.Errorf("%s: reserves %+v, want %+v", c.model, got, c.taken)
		}
		if got := rule.Settle(est, used); got != c.stayed {
			t.Errorf("%s: settles at %+v, want %+v", c.model, got, c.stayed)
		}
		if got := rule.Settle(est, llm.Usage{}); got != c.taken {
			t.Errorf("%s: an answer that does not say settles at %+v, want %+v", c.model, got, c.taken)
		}
	}
}

func TestVersions(t *testing.T) {
	for name, want := range map[string][2]int{
		"claude-3-haiku-20240307":             {3, 0},
		"claude-3-5-sonnet-latest":            {3, 5},
		"claude-sonnet-4-20250514":            {4, 0},
		"claude-opus-4-5@20251101":            {4, 5},
		"us.anthropic.claude-opus-4-7-v1:0":   {4, 7},
		"claude-opus-5":                       {5, 0},
		"anthropic.claude-instant-v1":         {0, 0},
		"claude-fable-5-1-and-something-else": {5, 1},
	} {
		if major, minor := version(name); [2]int{major, minor} != want {
			t.Errorf("%s: version %d.%d, want %v", name, major, minor, want)
		}
	}
}

func TestPictures(t *testing.T) {
	for _, c := range []struct {
		maker maker
		image Image
		want  int64
	}{
		{openAI, Image{Width: 1024, Height: 1024}, 765}, // OpenAI's examples
		{openAI, Image{Width: 2048, Height: 4096}, 1105},
		{openAI, Image{Width: 4096, Height: 8192, Low: true}, 85},
		{anthropic, Image{Width: 1000, Height: 1000}, 1334}, // Anthropic's example: about 1,334
		{anthropic, Image{Width: 200, Height: 200}, 54},
		{anthropic, Image{Width: 8000, Height: 8000}, 1600},
		{google, Image{Width: 384, Height: 384}, 258},
		{google, Image{Width: 960, Height: 540}, 516},
	} {
		if got := (kind{maker: c.maker}).image(c.image); got != c.want {
			t.Errorf("maker %d: %+v takes %d, want %d", c.maker, c.image, got, c.want)
		}
	}
}
