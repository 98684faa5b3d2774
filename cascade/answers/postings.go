package answers

import "math"

// Postings is an index in memory: for each term of a field, the titles that have it. It is filled
// once and does not change after. Titles are scored by tf-idf as Lucene did it (practical scoring
// function of TFIDFSimilarity), where each term stands in a title once.
type postings struct {
	lists map[string]map[string][]posting // by field and term
	docs  int                             // counted to say how rare a term is
	last  int                             // that was added
}

// A posting is one title that has a term.
type posting struct {
	doc  uint32
	norm float32 // 1 / sqrt(terms of the title)
}

// add has a document be found by its terms, each of which stands there once.
// Documents are added in order.
func (p *postings) add(doc int, field string, terms []string) {
	p.last = doc
	if p.lists == nil {
		p.lists = make(map[string]map[string][]posting)
	}
	if p.lists[field] == nil {
		p.lists[field] = make(map[string][]posting)
	}
	norm := float32(1 / math.Sqrt(float64(len(terms))))
	for _, term := range terms {
		p.lists[field][term] = append(p.lists[field][term], posting{uint32(doc), norm})
	}
}

// rarity is the inverse document frequency of a term.
func (p *postings) rarity(field, term string) float64 {
	return 1 + math.Log(float64(p.docs)/float64(len(p.lists[field][term])+1))
}

// most is what a text of one term would score if that could be all that is wanted.
func (p *postings) most(field string, wants []wanted) float64 {
	sum := 0.0
	for _, w := range wants {
		r := w.boost * p.rarity(field, w.term)
		sum += r * r
	}
	return math.Sqrt(sum)
}

// search gives each title that has any of the terms to yield, in order, with its score.
func (p *postings) search(field string, wants []wanted, yield func(doc int, score float64)) {
	type sum struct {
		score float64
		terms int
	}
	most, found := p.most(field, wants), make([]sum, p.last+1)
	for _, w := range wants {
		r := p.rarity(field, w.term)
		for _, at := range p.lists[field][w.term] {
			f := &found[at.doc]
			f.score += float64(at.norm) * r * w.boost * r / most
			f.terms++
		}
	}
	for doc, f := range found {
		if f.terms > 0 {
			yield(doc, f.score*float64(f.terms)/float64(len(wants)))
		}
	}
}
