package answers

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A title is one text under which an entry is found: a question, a keyword, or
// all of them together.
type title struct {
	entry int    // in the library
	field string // "questions[2]"; everything for all together
	text  string

	terms []string // what the index keeps of the text
	self  float64  // what the text scores when it is asked itself

	// keywords are sets of terms, of a title that is everything: a question with all terms of one of them matches,
	// however long it is. They are the terms of all keywords of the entry, and of each keyword of several
	// words. One word alone is no set.
	keywords [][]string
}

const everything = "questions and keywords"

// A shelf has the titles of one language. It does not change once it is built,
// and keeps neither goroutines nor files: one that is no longer used is
// left to the garbage collector.
type shelf struct {
	tongue   tongue
	splitter *splitter
	titles   []title
	reader   postings
	words    map[shape][]string // the terms known
}

// A shape is what a word keeps when it is misspelt, or nearly.
type shape struct {
	first   rune
	letters int
}

func shapeOf(term string) shape {
	first, _ := utf8.DecodeRuneInString(term)
	return shape{first, utf8.RuneCountInString(term)}
}

// fewest is how many titles a shelf counts as having at least. In a book of five
// questions every word is rare, and how rare says nothing; counting empty titles
// puts that right.
const fewest = 200

// The fields of the index. How rare a word is among the titles says nothing of how
// rare it is among the entries, so these are kept apart.
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

// newShelf builds the index of some titles, those of an entry in a row.
func newShelf(t tongue, titles []title) *shelf {
	s := &shelf{tongue: t, splitter: newSplitter(t), titles: append(titles, together(titles)...), words: make(map[shape][]string)}
	s.fill()
	s.measure()
	return s
}

// together is a title for each entry that has all the words of its titles.
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

// fillKeywords collects the terms of each entry's keywords.
func (s *shelf) fillKeywords() {
	of := make(map[int]*title) // entry to the title that is everything
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
		if slices.Sort(terms); len(slices.Compact(terms)) > 1 { // one word alone says too little of a long question
			of[entry].keywords = append(of[entry].keywords, terms)
		}
	}
}

// measure finds out what each title scores when it is asked itself: sqrt(sum of weights / number
// of terms), since each term stands in it once. It is not asked, as a book has thousands; a test asks.
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

// A wanted term is one of a question.
type wanted struct {
	term  string // as it is looked up
	typed string // its stem as it was written, if that is not known and looks like the term
	boost float64
}

const (
	// mostTerms of a question are looked up, and beyond them only those that the shelf knows: a keyword may come late.
	mostTerms = 64

	// A word that had to be corrected counts for a little less; a text with more
	// such words than this is about something else.
	corrected       = 0.8
	mostCorrections = 8
)

// wants is what a question looks for on this shelf.
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
			all[i] = w // it stands there spelt right, too
		}
	}
	return all
}

// correct is the word of the book that a word unknown to it was meant to be, if
// there is one: with the same first letter, and one slip for four letters or two
// for eight. Pairs of characters are not corrected, one for the other would always do.
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

// A hit is a title that shares a term with the question.
type hit struct {
	title      int
	score      float64 // by tf-idf
	confidence float64
}

// search gives each title that shares a term with the question to yield.
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

// hasKeywords reports whether a question of these terms has all words of the entry's keywords, or of one with several words.
func (t *title) hasKeywords(terms map[string]bool) bool {
	return slices.ContainsFunc(t.keywords, func(keyword []string) bool {
		return !slices.ContainsFunc(keyword, func(term string) bool { return !terms[term] })
	})
}

// covered is the confidence in an entry that has all the words of a question, but
// in no one question of its own, or in one whose keywords the question contains.
const covered = 0.77

// confidence makes a number from 0 to 1 of a score; see the comment of the package.
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
