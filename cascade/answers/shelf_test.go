package answers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// For the exact text of each title, search must return the score that measure computed.
func TestATitleAskedItselfScoresWhatWasMeasured(t *testing.T) {
	for _, s := range open(t, shop).library.Load().shelves {
		for i, own := range s.titles {
			var got hit
			s.search(s.wants(own.text), func(h hit) {
				if h.title == i {
					got = h
				}
			})
			if own.field != everything && math.Abs(got.score-own.self) > 1e-3*own.self {
				t.Errorf("%q scores %v, want %v", own.text, got.score, own.self)
			}
			if own.field != everything && got.confidence < 0.999 {
				t.Errorf("%q: confidence %v, want 1", own.text, got.confidence)
			}
		}
	}
}

// The confidence of any question is between 0 and 1. It does not depend on the order of words or on letter case.
func TestConfidenceKeepsBoundsAndIgnoresOrder(t *testing.T) {
	b := open(t, shop)
	b.Threshold = 1e-9
	var words []string
	for _, set := range labelled(t, "testdata/questions.yaml") {
		for _, questions := range set {
			for _, q := range questions {
				if scriptOf(q) == latin {
					words = append(words, strings.Fields(q)...)
				}
			}
		}
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		var q []string
		for range 1 + r.IntN(mostCorrections) {
			q = append(q, words[r.IntN(len(words))])
		}
		m, _ := b.Find(strings.Join(q, " "))
		if m.Confidence < 0 || m.Confidence > 1 || math.IsNaN(m.Confidence) {
			t.Fatalf("seed %d: %q: confidence %v", seed, q, m.Confidence)
		}
		r.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
		if n, _ := b.Find(strings.ToUpper(strings.Join(q, "  "))); math.Abs(n.Confidence-m.Confidence) > 1e-9 {
			t.Fatalf("seed %d: %q: confidence %v, and %v in another order", seed, q, m.Confidence, n.Confidence)
		}
	}
}

// Each additional word that the entry does not have reduces the confidence.
func TestLongerQuestionsAroundAKeywordAreLessSure(t *testing.T) {
	b := open(t, shop)
	b.Threshold = 1e-9
	last, q := 2.0, "refund"
	for i := range 20 {
		m, _ := b.Find(q)
		if m.ID != "refunds" || m.Confidence >= last {
			t.Fatalf("%q: got %q at %v, want less than %v", q, m.ID, m.Confidence, last)
		}
		if i >= 2 && m.Confidence >= usual {
			t.Errorf("%q: confidence %v is a match", q, m.Confidence)
		}
		last, q = m.Confidence, q+fmt.Sprintf(" xyzzy%c", 'a'+rune(i))
	}
}

func TestASmallBookJudgesLikeALargeOne(t *testing.T) {
	b := new(Book)
	if err := b.Parse("a.yaml", []byte("answers: [{questions: [\"How do I return an item?\"], answer: So.}]")); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]bool{
		"how can I return an item": true, "returning items": true, "what is the capital of France": false,
		"the item on the news about France": false,
	} {
		if m, ok := b.Find(q); ok != want {
			t.Errorf("%q: got %v %+v, want %v", q, ok, m, want)
		}
	}
}

// large returns a book of many entries with a realistic word distribution: a few words are in very many entries, and
// many words in a few.
func large(t testing.TB, entries int) *Book {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%dord", int(math.Pow(8000, r.Float64()))) }
	var f strings.Builder
	f.WriteString("answers:\n")
	for i := range entries {
		fmt.Fprintf(&f, "- answer: This is answer %d.\n  questions:\n", i)
		for range 4 {
			fmt.Fprintf(&f, "  - %s %s %s %s %s %d\n", word(), word(), word(), word(), word(), i)
		}
	}
	b := new(Book)
	if err := b.Parse("large.yaml", []byte(f.String())); err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkFind20(b *testing.B) {
	book := open(b, shop)
	b.ReportAllocs()
	for b.Loop() {
		book.Find("how long does it take until I get my money back for the shoes")
	}
}

func BenchmarkFind20Japanese(b *testing.B) {
	book := open(b, shop)
	for b.Loop() {
		book.Find("商品が届くまでどのくらいかかりますか")
	}
}

func BenchmarkFind10000(b *testing.B) {
	book := large(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		book.Find("w1ord w2ord w3ord w50ord w700ord w7000ord unknownword")
	}
}

// Measures the longest question with only misspelled words.
func BenchmarkFind10000Worst(b *testing.B) {
	book := large(b, 10_000)
	var q strings.Builder
	for i := range 400 {
		fmt.Fprintf(&q, "w%dorx ", 10*i+10)
	}
	for b.Loop() {
		book.Find(q.String())
	}
}

func BenchmarkParse10000(b *testing.B) {
	for b.Loop() {
		large(b, 10_000)
	}
}
