package answers

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	unicodewords "github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/registry"
)

// A splitter makes of a text what the index keeps of it: the stems of its words,
// or the pairs of its characters, each once and without those that every
// question has.
type splitter struct {
	base   analysis.Analyzer
	plain  analysis.Analyzer // words as they are, for texts that have none but common ones: "Who are you?"
	kana   bool              // leave hiragana out where something else is left
	filler map[string]bool   // stems
	blank  *strings.Replacer // where words are not written apart: takes fillers out of a text; or nil
}

func newSplitter(t tongue) (*splitter, error) {
	s := &splitter{kana: t.script == kana, filler: make(map[string]bool)}
	var err error
	if s.base, err = baseOf(t); err != nil {
		return nil, fmt.Errorf("language %s: %w", t.code, err)
	}
	if s.plain, err = pipeline(lowercase.Name); err != nil {
		return nil, err
	}
	if t.script == han || t.script == hangul {
		s.blank = blanks(t.filler)
		return s, nil
	}
	for word := range strings.FieldsSeq(t.filler) {
		for _, token := range s.base.Analyze([]byte(word)) {
			s.filler[string(token.Term)] = true
		}
	}
	return s, nil
}

// blanks puts a blank in the place of each phrase, the longest that fits.
func blanks(phrases string) *strings.Replacer {
	all := strings.Fields(phrases)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, phrase := range all {
		pairs = append(pairs, phrase, " ")
	}
	return strings.NewReplacer(pairs...)
}

func baseOf(t tongue) (analysis.Analyzer, error) {
	if t.analyzer != "" {
		return registry.NewCache().AnalyzerNamed(t.analyzer)
	}
	pairs, err := pipeline(cjk.WidthName, lowercase.Name, cjk.BigramName)
	if err != nil {
		return nil, err
	}
	pairs.TokenFilters = slices.Insert(pairs.TokenFilters, 2, analysis.TokenFilter(syllables{}))
	return pairs, nil
}

// pipeline is words, filtered one after the other.
func pipeline(filters ...string) (*analysis.DefaultAnalyzer, error) {
	cache := registry.NewCache()
	words, err := cache.TokenizerNamed(unicodewords.Name)
	if err != nil {
		return nil, err
	}
	p := &analysis.DefaultAnalyzer{Tokenizer: words}
	for _, name := range filters {
		filter, err := cache.TokenFilterNamed(name)
		if err != nil {
			return nil, err
		}
		p.TokenFilters = append(p.TokenFilters, filter)
	}
	return p, nil
}

// syllables has words of Hangul cut into pairs, too. Bleve's filter takes them
// for words of an alphabet; but endings and particles are written on to them.
type syllables struct{}

func (syllables) Filter(tokens analysis.TokenStream) analysis.TokenStream {
	for _, t := range tokens {
		if r, _ := utf8.DecodeRune(t.Term); unicode.Is(unicode.Hangul, r) {
			t.Type = analysis.Ideographic
		}
	}
	return tokens
}

// analyze is the tokens of a text: of the ways to split it the first that leaves
// something of it.
func (s *splitter) analyze(text []byte) analysis.TokenStream {
	if s.kana {
		if tokens := s.content(s.base.Analyze(withoutHiragana(text))); len(tokens) > 0 {
			return tokens
		}
	}
	if s.blank != nil {
		if tokens := once(s.base.Analyze([]byte(s.blank.Replace(string(text))))); len(tokens) > 0 {
			return tokens
		}
	}
	tokens := s.base.Analyze(slices.Clone(text)) // some filters write into it
	if kept := s.content(tokens); len(kept) > 0 {
		return kept
	}
	if len(tokens) == 0 {
		tokens = s.plain.Analyze(slices.Clone(text))
	}
	return once(tokens)
}

// content is the tokens without fillers.
func (s *splitter) content(tokens analysis.TokenStream) analysis.TokenStream {
	var kept analysis.TokenStream
	for _, t := range tokens {
		if !s.filler[string(t.Term)] {
			kept = append(kept, t)
		}
	}
	return once(kept)
}

// once leaves repetitions out, so that saying a thing twice makes it no surer.
func once(tokens analysis.TokenStream) analysis.TokenStream {
	seen := make(map[string]bool, len(tokens))
	return slices.DeleteFunc(tokens, func(t *analysis.Token) bool {
		had := seen[string(t.Term)]
		seen[string(t.Term)] = true
		return had
	})
}

// withoutHiragana has blanks in its place. In Japanese it writes endings and
// particles, which a question has many of and which say little; what is asked
// for stands in kanji and katakana.
func withoutHiragana(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if unicode.Is(unicode.Hiragana, r) {
			r = ' '
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// split is the terms of a text.
func (s *splitter) split(text string) []string {
	var terms []string
	for _, t := range s.analyze([]byte(text)) {
		terms = append(terms, string(t.Term))
	}
	return terms
}
