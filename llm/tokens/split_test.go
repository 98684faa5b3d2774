package tokens

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// pieces has characters that the tokenizers' expressions treat specially.
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
	// The tokenizer reads invalid UTF-8 in its own way. JSON parsers replace it before, so the test excludes it.
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

// checkShort compares shortWord with the general functions.
func checkShort(t *testing.T, s string) (short int) {
	t.Helper()
	for i := range len(s) {
		end, h := shortWord(s, i)
		if end == 0 {
			continue
		}
		short++
		if want := wordEnd(s, i); end != want || h != hash(s[i:want]) {
			t.Fatalf("%q: the word at %d ends at %d with hash %x, want %d and %x", s, i, end, h, want, hash(s[i:want]))
		}
	}
	return short
}

func TestShortWordsAreThoseOfTheRest(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 3000 {
		checkShort(t, randomText(r))
	}
	for c := range 256 { // each byte at each position
		for at := range 10 {
			b := []byte(" abcdefghij")
			b[at] = byte(c)
			checkShort(t, string(b))
			checkShort(t, string(b[:9]))
		}
	}
	if n := checkShort(t, fourKiB(english)); n < 2000 {
		t.Errorf("of 4 KiB of English, short words begin at %d places", n)
	}
}

func TestWordsOfOtherBytesHaveOtherHashes(t *testing.T) {
	seen := make(map[uint64]string)
	for _, c := range "ab\x00" {
		for n := range 20 {
			for at := range n {
				s := []byte(strings.Repeat("x", n))
				s[at] = byte(c)
				if before, ok := seen[hash(string(s))]; ok {
					t.Errorf("%q has the hash of %q", s, before)
				}
				seen[hash(string(s))] = string(s)
			}
		}
	}
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
		checkShort(t, s)
		var p profile
		p.add(s)
		for class, n := range p {
			if n < 0 || n > len(s) {
				t.Fatalf("class %d: %d in %d bytes", class, n, len(s))
			}
		}
	})
}
