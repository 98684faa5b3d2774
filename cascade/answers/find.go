package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A Match is an answer that was found.
type Match struct {
	ID         string // of the entry; "entry-3" for a third entry without an ID
	Answer     string
	Language   string  // of the answer
	Confidence float64 // from the threshold to 1
	Question   string  // the matched question or keyword; all of them, one per line, if only all together matched
	Why        string  // explanation for operators
}

// Find returns the answer to a question, if there is one. languages has the caller's languages, best first, with or
// without a region. If none of them uses the question's script, all languages with that script are searched. The answer
// is in the language of the match, or in the entry's first language if there is none. Only the first 4 KiB of a question
// are used.
func (b *Book) Find(question string, languages ...string) (Match, bool) {
	l := b.library.Load()
	if l == nil {
		return Match{}, false
	}
	question = head(question)
	var best found
	for _, s := range l.where(question, languages) {
		wants := s.wants(question)
		s.search(wants, func(h hit) {
			if h.confidence > best.confidence {
				best = found{h, s, wants}
			}
		})
	}
	if best.shelf == nil || best.confidence < b.threshold() {
		return Match{}, false
	}
	return l.match(best), true
}

type found struct {
	hit
	shelf *shelf
	wants []wanted
}

func (l *library) match(f found) Match {
	t := f.shelf.titles[f.title]
	e := l.entries[t.entry]
	language := e.languages[0]
	if e.answers[f.shelf.tongue.code] != "" {
		language = f.shelf.tongue.code
	}
	return Match{
		ID: e.id, Answer: e.answers[language], Language: language,
		Confidence: f.confidence, Question: t.text,
		Why: f.why(),
	}
}

func (f found) why() string {
	t := f.shelf.titles[f.title]
	by := strings.Join(f.matched(), ", ")
	if t.field == everything {
		return fmt.Sprintf("%s have %s", t.field, by)
	}
	return fmt.Sprintf("%s %s has %s", t.field, doc.Quote(t.text), by)
}

func (f found) matched() (terms []string) {
	for _, w := range f.wants {
		if slices.Contains(f.shelf.titles[f.title].terms, w.term) {
			terms = append(terms, w.String())
		}
	}
	return terms
}

func (w wanted) String() string {
	if w.typed != "" {
		return w.typed + "~" + w.term
	}
	return w.term
}

// head returns the part of a question that is used.
func head(question string) string {
	if len(question) <= maxQuestion {
		return question
	}
	cut := maxQuestion
	for cut > 0 && !utf8.RuneStart(question[cut]) {
		cut--
	}
	return question[:cut]
}

// An Explanation describes what a question matches, and why.
type Explanation struct {
	Question   string      `json:"question"`
	Threshold  float64     `json:"threshold"`
	Searches   []Search    `json:"searches"`   // one for each searched language
	Candidates []Candidate `json:"candidates"` // best first, at most ten
}

// A Search is a question's terms for one language.
type Search struct {
	Language string   `json:"language"`
	Terms    []string `json:"terms"` // stems, or pairs of characters; "typed~known" for a corrected word
}

// A Candidate is an entry that shares a term with a question.
type Candidate struct {
	ID         string   `json:"id"`
	Confidence float64  `json:"confidence"`
	Score      float64  `json:"score"`    // tf-idf score, not comparable between questions
	Language   string   `json:"language"` // of the index
	Field      string   `json:"field"`    // "questions[2]", "keywords.ja[0]"
	Text       string   `json:"text"`     // the text of the field
	Terms      []string `json:"terms"`    // terms shared with the question
	Answers    bool     `json:"answers"`  // Find returns this entry
}

const mostCandidates = 10

// Explain is like Find, but returns the reasons: the best title of each entry that shares a term with the question.
func (b *Book) Explain(question string, languages ...string) Explanation {
	e := Explanation{Question: head(question), Threshold: b.threshold(), Searches: []Search{}, Candidates: []Candidate{}}
	l := b.library.Load()
	if l == nil {
		return e
	}
	best := make(map[int]found) // by entry
	for _, s := range l.where(e.Question, languages) {
		wants := s.wants(e.Question)
		e.Searches = append(e.Searches, Search{s.tongue.code, texts(wants)})
		s.search(wants, func(h hit) {
			if n := s.titles[h.title].entry; h.confidence > best[n].confidence {
				best[n] = found{h, s, wants}
			}
		})
	}
	for n, f := range best {
		e.Candidates = append(e.Candidates, l.candidate(n, f))
	}
	e.rank()
	return e
}

func (l *library) candidate(n int, f found) Candidate {
	t := f.shelf.titles[f.title]
	return Candidate{
		ID: l.entries[n].id, Confidence: f.confidence, Score: f.score, Language: f.shelf.tongue.code,
		Field: t.field, Text: t.text, Terms: f.matched(),
	}
}

func (e *Explanation) rank() {
	slices.SortFunc(e.Candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ID, b.ID))
	})
	e.Candidates = e.Candidates[:min(len(e.Candidates), mostCandidates)]
	if len(e.Candidates) > 0 && e.Candidates[0].Confidence >= e.Threshold {
		e.Candidates[0].Answers = true
	}
}

func texts(wants []wanted) []string {
	all := []string{}
	for _, w := range wants {
		all = append(all, w.String())
	}
	return all
}
