package answers

import "math"

// A postings is an index in memory. For each term of a field it has the titles that contain the term. It is filled once
// and then immutable. Scores are tf-idf as in Lucene (practical scoring function of TFIDFSimilarity), where each term
// occurs once in a title.
type postings struct {
	lists map[string]map[string][]posting // by field and term
	docs  int                             // number of documents, from which the rarity of a term is calculated
	last  int                             // last added document
}

type posting struct {
	doc  uint32
	norm float32 // 1 / sqrt(number of the title's terms)
}

// add adds a document with its distinct terms. Documents must be added in order.
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

// rarity returns the inverse document frequency of a term.
func (p *postings) rarity(field, term string) float64 {
	return 1 + math.Log(float64(p.docs)/float64(len(p.lists[field][term])+1))
}

// most returns the score of a text with a single term that would match the entire question.
func (p *postings) most(field string, wants []wanted) float64 {
	sum := 0.0
	for _, w := range wants {
		r := w.boost * p.rarity(field, w.term)
		sum += r * r
	}
	return math.Sqrt(sum)
}

// search calls yield with each title that contains any of the terms, in order, and its score.
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
