package answers

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/segment"
	"golang.org/x/text/unicode/norm"
)

// A splitter makes of a text what the index keeps of it: the stems of its words,
// or the pairs of its characters, each once and without those that every
// question has.
type splitter struct {
	base   func(text string) []string
	kana   bool              // leave hiragana out where something else is left
	filler map[string]bool   // stems
	blank  *strings.Replacer // where words are not written apart: takes fillers out of a text; or nil
}

func newSplitter(t tongue) *splitter {
	s := &splitter{base: pairs, kana: t.script == kana, filler: make(map[string]bool)}
	if t.stem != nil {
		s.base = stemmer{stem: t.stem, stop: stopWords[t.code], elided: t.elided, suffixed: t.code == "tr"}.stems
	}
	if t.script == han || t.script == hangul {
		s.blank = blanks(t.filler)
		return s
	}
	for word := range strings.FieldsSeq(t.filler) {
		for _, term := range s.base(word) {
			s.filler[term] = true
		}
	}
	return s
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

// A word is one of a text, where words end as UAX #29 has it.
type word struct {
	text       string
	start, end int
	ideograph  bool // or kana: a character, or a run of them
}

func words(text string) (all []word) {
	start := 0
	for s := segment.NewWordSegmenterDirect([]byte(text)); s.Segment(); {
		end := start + len(s.Bytes())
		if s.Type() != segment.None {
			all = append(all, word{string(s.Bytes()), start, end, s.Type() == segment.Ideo || s.Type() == segment.Kana})
		}
		start = end
	}
	return all
}

// plain is the words of a text as they are, for texts that have none but common ones: "Who are you?"
func plain(text string) (all []string) {
	for _, w := range words(text) {
		all = append(all, strings.ToLower(w.text))
	}
	return all
}

// pairs is the characters of a text in overlapping pairs, and words of alphabets whole. Half and
// full width are one. Words of Hangul are cut, too: endings and particles are written on to them.
func pairs(text string) (all []string) {
	var run []rune // characters that follow one another
	flush := func() {
		if len(run) == 1 {
			all = append(all, string(run))
		}
		for i := 1; i < len(run); i++ {
			all = append(all, string(run[i-1:i+1]))
		}
		run = run[:0]
	}
	end := 0
	for _, w := range words(text) {
		wide := strings.ToLower(norm.NFKC.String(w.text))
		first, _ := utf8.DecodeRuneInString(wide)
		if w.start != end {
			flush()
		}
		end = w.end
		if w.ideograph || unicode.Is(unicode.Hangul, first) {
			run = append(run, []rune(wide)...)
			continue
		}
		flush()
		all = append(all, wide)
	}
	flush()
	return all
}

// split is the terms of a text: of the ways to split it the first that leaves something of it.
func (s *splitter) split(text string) []string {
	if s.kana {
		if terms := s.content(s.base(withoutHiragana(text))); len(terms) > 0 {
			return terms
		}
	}
	if s.blank != nil {
		if terms := once(s.base(s.blank.Replace(text))); len(terms) > 0 {
			return terms
		}
	}
	terms := s.base(text)
	if kept := s.content(terms); len(kept) > 0 {
		return kept
	}
	if len(terms) == 0 {
		terms = plain(text)
	}
	return once(terms)
}

// content is the terms without fillers.
func (s *splitter) content(terms []string) (kept []string) {
	for _, t := range terms {
		if !s.filler[t] {
			kept = append(kept, t)
		}
	}
	return once(kept)
}

// once leaves repetitions out, so that saying a thing twice makes it no surer.
func once(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	return slices.DeleteFunc(terms, func(t string) bool {
		had := seen[t]
		seen[t] = true
		return had
	})
}

// withoutHiragana has blanks in its place. In Japanese it writes endings and
// particles, which a question has many of and which say little; what is asked
// for stands in kanji and katakana.
func withoutHiragana(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Hiragana, r) {
			return ' '
		}
		return r
	}, text)
}
