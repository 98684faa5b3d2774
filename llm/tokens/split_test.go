package tokens

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// pieces are what the expressions of the tokenizers treat in ways of their own.
var pieces = []string{
	" ", "  ", "\t", "\n", "\r\n", "\n\n", "a", "The", "word", "XML", "fooBar", "don't", "'s", "'", "\"", "’", "ſ",
	"1", "12", "1234567", "½", "²", "٣", ".", "...", "/", "//", "(", "((", "{", "};", "$", "é", "für", "Ж", "слово",
	"日本", "、", "。", "「", "」", "カタカナ", "ー", "ひらがな", "々", "　", "，", "！", "한국어", "ไทย", "हिन्दी", "\u0301",
	"\u00a0", "\u200b", "\u2028", "🙂", "👩‍👩‍👧", "\xff", "\xe3\x81", "\x00", "\v", "\f", "Ａ", "１",
}

func TestWordsAddUpToTheWhole(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		codec, err := tokenizer.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			text := randomText(r)
			if got, want := byWords(t, codec, text), count(t, codec, text); got != want {
				t.Fatalf("%s, seed %d: %q: %d tokens by words, %d as a whole", name, seed, text, got, want)
			}
		}
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	// The tokenizer reads broken UTF-8 in ways of its own; so does every JSON parser
	// before it, which leaves none.
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

func byWords(t *testing.T, codec tokenizer.Codec, text string) (sum int) {
	t.Helper()
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		if end <= i || !utf8.ValidString(text[i:end]) {
			t.Fatalf("%q: a word from %d to %d", text, i, end)
		}
		sum += count(t, codec, text[i:end])
		i = end
	}
	return sum
}

func count(t *testing.T, codec tokenizer.Codec, text string) int {
	t.Helper()
	n, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func FuzzEveryTextEnds(f *testing.F) {
	f.Add("The quick brown fox.")
	f.Add("ab\xc3")
	f.Add("日本語、です。\xe3\x81")
	f.Fuzz(func(t *testing.T, s string) {
		for i := 0; i < len(s); {
			end := wordEnd(s, i)
			if end <= i {
				t.Fatalf("no word at %d", i)
			}
			i = end
		}
		var p profile
		p.add(s)
		for class, n := range p {
			if n < 0 || n > len(s) {
				t.Fatalf("class %d: %d in %d bytes", class, n, len(s))
			}
		}
	})
}
