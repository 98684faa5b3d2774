package tokens

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/llm"
	"github.com/tiktoken-go/tokenizer"
)

// BenchmarkEstimate measures the estimate of a call of 4 KiB. "heard" includes its settlement. The texts have many
// different words, so that caching them is not too easy.
func BenchmarkEstimate(b *testing.B) {
	for _, c := range []struct{ name, model, text string }{
		{"openai/english", "gpt-4o", fourKiB(english)},
		{"openai/japanese", "gpt-4o", fourKiB(japanese)},
		{"anthropic/english", "claude-sonnet-4-5", fourKiB(english)},
		{"anthropic/japanese", "claude-sonnet-4-5", fourKiB(japanese)},
	} {
		p := Prompt{Texts: slices.Values([]string{c.text}), Messages: 1}
		b.Run(c.name, func(b *testing.B) {
			var e Estimator
			e.Load(llm.OpenAI, c.model)
			b.ReportAllocs()
			for b.Loop() {
				e.Estimate(llm.OpenAI, c.model, p, 0)
			}
		})
		b.Run(c.name+"/heard", func(b *testing.B) {
			var e Estimator
			e.Load(llm.OpenAI, c.model)
			b.ReportAllocs()
			for b.Loop() {
				est := e.Estimate(llm.OpenAI, c.model, p, 0)
				e.Observe(est, est.Input+5, 200)
			}
		})
	}
}

// BenchmarkNeverSeen clears the cached words before each call, which is the most expensive case.
func BenchmarkNeverSeen(b *testing.B) {
	for name, text := range map[string]string{"english": fourKiB(english), "japanese": fourKiB(japanese)} {
		p := Prompt{Texts: slices.Values([]string{text}), Messages: 1}
		b.Run(name, func(b *testing.B) {
			var e Estimator
			e.Load(llm.OpenAI, "gpt-4o")
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				clear(e.o200k.seen)
				b.StartTimer()
				e.Estimate(llm.OpenAI, "gpt-4o", p, 0)
			}
		})
	}
}

// BenchmarkTokenizer measures the cost if everything were counted every time.
func BenchmarkTokenizer(b *testing.B) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"english": fourKiB(english), "japanese": fourKiB(japanese)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Count(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func fourKiB(s string) string {
	s = strings.Repeat(s, 4096/len(s)+1)
	return strings.ToValidUTF8(s[:4096], "")
}
