package answers

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/segment"
	"golang.org/x/text/unicode/norm"
)

// A splitter returns the terms of a text for the index: the stems of its words or the pairs of its characters, each
// once, without common words.
type splitter struct {
	base   func(text string) []string
	kana   bool              // ignore hiragana if anything else is left
	filler map[string]bool   // stems
	blank  *strings.Replacer // removes fillers from a text without word separation; or nil
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

// blanks returns a Replacer of each phrase by a blank. Longer phrases come first.
func blanks(phrases string) *strings.Replacer {
	all := strings.Fields(phrases)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, phrase := range all {
		pairs = append(pairs, phrase, " ")
	}
	return strings.NewReplacer(pairs...)
}

// A word is a word of a text according to UAX #29.
type word struct {
	text       string
	start, end int
	ideograph  bool // one or more ideographs or kana
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

// plain returns the words of a text unchanged, for texts that contain only common words: "Who are you?"
func plain(text string) (all []string) {
	for _, w := range words(text) {
		all = append(all, strings.ToLower(w.text))
	}
	return all
}

// pairs returns overlapping pairs of characters, and complete words of alphabets. Half-width and full-width forms are
// equal. Korean words are also split into pairs, because endings and particles are joined to them.
func pairs(text string) (all []string) {
	var run []rune // adjacent characters
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

// split returns the terms of a text, from the first method that returns any.
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

// content returns the terms without fillers.
func (s *splitter) content(terms []string) (kept []string) {
	for _, t := range terms {
		if !s.filler[t] {
			kept = append(kept, t)
		}
	}
	return once(kept)
}

// once removes repeated terms, because repetition must not increase the confidence.
func once(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	return slices.DeleteFunc(terms, func(t string) bool {
		had := seen[t]
		seen[t] = true
		return had
	})
}

// withoutHiragana replaces hiragana by blanks. In Japanese it writes endings and particles, which are frequent and have
// little meaning. The subject of a question is in kanji and katakana.
func withoutHiragana(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Hiragana, r) {
			return ' '
		}
		return r
	}, text)
}
