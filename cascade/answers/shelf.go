package answers

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A title is a text that leads to an entry: a question, a keyword, or all of them together.
type title struct {
	entry int    // index in the library
	field string // "questions[2]"; everything for all texts together
	text  string

	terms []string // terms in the index
	self  float64  // score of the text for itself

	// keywords has sets of terms, for a title with all texts. A question of any length with all terms of one set
	// matches. The sets are the terms of all keywords together, and of each keyword of several words. A single word is
	// not a set.
	keywords [][]string
}

const everything = "questions and keywords"

// A shelf has the titles of one language. It is immutable and has no goroutines or files, so an unused shelf is simply
// garbage collected.
type shelf struct {
	tongue   tongue
	splitter *splitter
	titles   []title
	reader   postings
	words    map[shape][]string // known terms
}

// A shape is the part of a word that is usually unchanged by a misspelling.
type shape struct {
	first   rune
	letters int
}

func shapeOf(term string) shape {
	first, _ := utf8.DecodeRuneInString(term)
	return shape{first, utf8.RuneCountInString(term)}
}

// fewest is the minimum number of titles in the statistics. In a book of five questions every word is rare, so rarity
// has no meaning. Counting empty titles corrects that.
const fewest = 200

// Fields of the index. They are separate because the rarity of a word among titles differs from its rarity among
// entries.
const (
	single = "title"
	whole  = "entry"
)

func (t title) indexed() string {
	if t.field == everything {
		return whole
	}
	return single
}

// newShelf builds the index of titles. Titles of an entry must be adjacent.
func newShelf(t tongue, titles []title) *shelf {
	s := &shelf{tongue: t, splitter: newSplitter(t), titles: append(titles, together(titles)...), words: make(map[shape][]string)}
	s.fill()
	s.measure()
	return s
}

// together returns a title for each entry with all words of its titles.
func together(titles []title) (all []title) {
	for len(titles) > 0 {
		first := titles[0]
		var texts []string
		for len(titles) > 0 && titles[0].entry == first.entry {
			texts, titles = append(texts, titles[0].text), titles[1:]
		}
		all = append(all, title{entry: first.entry, field: everything, text: strings.Join(texts, "\n")})
	}
	return all
}

func (s *shelf) fill() {
	s.reader.docs = max(len(s.titles), fewest)
	for i := range s.titles {
		t := &s.titles[i]
		if t.terms == nil {
			t.terms = s.splitter.split(t.text)
		}
		s.reader.add(i, t.indexed(), t.terms)
	}
	s.fillKeywords()
}

func (s *shelf) fillKeywords() {
	of := make(map[int]*title) // from entry to its title with all texts
	for i := range s.titles {
		if t := &s.titles[i]; t.field == everything {
			of[t.entry] = t
		}
	}
	all := make(map[int][]string)
	for i := range s.titles {
		t := &s.titles[i]
		if !strings.HasPrefix(t.field, "keywords") || of[t.entry] == nil {
			continue
		}
		all[t.entry] = append(all[t.entry], t.terms...)
		if len(t.terms) > 1 {
			of[t.entry].keywords = append(of[t.entry].keywords, t.terms)
		}
	}
	for entry, terms := range all {
		if slices.Sort(terms); len(slices.Compact(terms)) > 1 { // one word is too little for a long question
			of[entry].keywords = append(of[entry].keywords, terms)
		}
	}
}

// measure computes each title's score for itself: sqrt(sum of weights / number of terms), because each term occurs once.
// It does not run the search, because a book has thousands of titles. A test compares both.
func (s *shelf) measure() {
	weights := make(map[string]float64)
	for i := range s.titles {
		t := &s.titles[i]
		if t.field == everything {
			continue
		}
		sum := 0.0
		for _, term := range t.terms {
			if _, ok := weights[term]; !ok {
				r := s.reader.rarity(single, term)
				weights[term] = r * r
				s.words[shapeOf(term)] = append(s.words[shapeOf(term)], term)
			}
			sum += weights[term]
		}
		t.self = math.Sqrt(sum / float64(max(1, len(t.terms))))
	}
}

type wanted struct {
	term  string // the term to look up
	typed string // the stem as written, if it was corrected to term
	boost float64
}

const (
	// mostTerms is the number of terms of a question that are looked up. Further terms are looked up only if the shelf
	// knows them, because a keyword may come late.
	mostTerms = 64

	// A corrected word counts a little less. At most mostCorrections unknown words are corrected: a text with more of
	// them is about something else.
	corrected       = 0.8
	mostCorrections = 8
)

// wants returns the terms of a question to look up on this shelf.
func (s *shelf) wants(question string) []wanted {
	terms := s.splitter.split(question)
	all := make([]wanted, 0, len(terms))
	at := make(map[string]int, len(terms))
	unknown := 0
	for n, term := range terms {
		if n >= mostTerms && s.reader.lists[single][term] == nil {
			continue
		}
		w := wanted{term: term, boost: 1}
		if s.reader.lists[single][term] == nil && unknown < mostCorrections {
			unknown++
			if known := s.correct(term); known != "" {
				w = wanted{term: known, typed: term, boost: corrected}
			}
		}
		i, had := at[w.term]
		switch {
		case !had:
			at[w.term] = len(all)
			all = append(all, w)
		case w.typed == "":
			all[i] = w // the correct spelling occurs too
		}
	}
	return all
}

// correct returns the known word that was probably meant by an unknown word, or "". It has the same first letter, and at
// most one difference for four letters or two for eight. Pairs of characters are not corrected, because a similar pair
// always exists.
func (s *shelf) correct(term string) string {
	of := shapeOf(term)
	if of.letters < 4 || s.tongue.stem == nil {
		return ""
	}
	slips := 1
	if of.letters >= 8 {
		slips = 2
	}
	var like []string
	for n := of.letters - slips; n <= of.letters+slips; n++ {
		like = append(like, s.words[shape{of.first, n}]...)
	}
	return doc.Closest(term, like, slips+1)
}

type hit struct {
	title      int
	score      float64 // tf-idf
	confidence float64
}

func (s *shelf) search(wants []wanted, yield func(hit)) {
	if len(wants) == 0 {
		return
	}
	written := make(map[string]bool, len(wants))
	for _, w := range wants {
		written[w.term] = w.typed == ""
	}
	for _, field := range []string{single, whole} {
		most := s.reader.most(field, wants)
		s.reader.search(field, wants, func(title int, score float64) {
			h := hit{title, score, s.confidence(score, title, most)}
			if s.titles[title].hasKeywords(written) {
				h.confidence = max(h.confidence, covered)
			}
			yield(h)
		})
	}
}

// hasKeywords reports whether terms contains all words of one of the keyword sets.
func (t *title) hasKeywords(terms map[string]bool) bool {
	return slices.ContainsFunc(t.keywords, func(keyword []string) bool {
		return !slices.ContainsFunc(keyword, func(term string) bool { return !terms[term] })
	})
}

// covered is the maximum confidence in an entry whose texts together contain all words of a question. It is also the
// minimum confidence in an entry whose keywords are all in the question.
const covered = 0.77

// confidence converts a score to a number from 0 to 1. See the package comment.
func (s *shelf) confidence(score float64, i int, most float64) float64 {
	t := s.titles[i]
	if t.field == everything {
		return covered * math.Sqrt(min(1, score/most*math.Sqrt(float64(len(t.terms)))))
	}
	if t.self == 0 {
		return 0
	}
	return math.Sqrt(min(1, score/t.self))
}
