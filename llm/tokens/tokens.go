// Package tokens says before a call to a language model how many tokens it will
// cost, and learns from what the answers report.
//
// For models of OpenAI the text is cut into words, and words are counted by their
// tokenizer once and remembered. Of words not seen before each call has a few counted
// and estimates the rest, for the tokenizer takes 240 to 370 us for 4 KiB and a call
// may cost 100 us in all. So an estimate takes about 10 us, and 45 us while no word is
// known. Fresh texts are off by about 6 % in the mean, and a text that comes again and
// again is soon counted exactly.
//
// All other texts are estimated: a token is so many letters, digits, characters of each
// script (see classes), by weights for the maker of the model. accuracy_test.go has the
// errors of both ways.
//
// What answers report corrects the estimates, model by model (see Estimator.Observe).
// How much of an estimate a provider takes from its limits before it answers is what
// a Rule says.
package tokens

import (
	"iter"

	"github.com/seed1158cd35/weir/llm"
)

// A Prompt is what a request sends, as far as its cost depends on it.
type Prompt struct {
	Texts    iter.Seq[string] // all that the model reads: messages, system prompt, tools as JSON; nil means none
	Messages int              // how many there are, the system prompt included
	Names    int              // messages that carry a name
	Tools    int              // functions that the model may call
	Images   []Image
	PDF      int64 // bytes of documents, as they are, not in base64
	Audio    int64 // bytes of sound
	Video    int64 // bytes of film
	Numbers  int64 // tokens that the prompt gives as numbers
	Bytes    int64 // bytes of what could not be read; taken for text
}

// An Image is a picture in a prompt.
type Image struct {
	Width, Height int   // in pixels; 0 if not known, which is taken for a large one
	Bytes         int64 // of the file, for when its sides are not known; 0 if that is not known either
	Low           bool  // OpenAI's detail "low"
}

// An Estimate is what a call is expected to cost, in tokens.
type Estimate struct {
	Family llm.Family
	Model  string
	Input  int64 // expected
	Output int64 // expected at the most: 9 of 10 answers like it were not longer
	Max    int64 // what the request allows the answer; 0 if it says nothing
	raw    int64 // Input as it would be if nothing were learnt
}

// Total is what the call is expected to cost in all.
func (e Estimate) Total() int64 { return e.Input + e.Output }

// Most is what it can cost: no estimate of output is above Max.
func (e Estimate) Most() int64 { return e.Input + max(e.Output, e.Max) }

const (
	// DefaultOutput is what an answer is expected to take while nothing is known of
	// a model and the request allows it more, or says nothing.
	DefaultOutput = 1024

	// most is more than any model takes; what is above is not a number of tokens.
	most = 20_000_000
)

// An Estimator estimates calls and learns. It may be shared, the zero value is ready,
// and it must not be copied. It keeps up to 1,000 models; all others share one place,
// named "(other)".
type Estimator struct {
	models models
	o200k  vocabulary
	cl100k vocabulary
}

// Load gets ready what the estimates of a model need, about 25 ms of work and
// 8 MiB of memory for those of OpenAI; otherwise the first call does it.
func (e *Estimator) Load(family llm.Family, model string) {
	e.vocabulary(nameOf(family, model).encoding)
}

// Estimate says what a call will cost. maxOutput is what the request allows the
// answer, in tokens; 0 or less if it says nothing.
func (e *Estimator) Estimate(family llm.Family, model string, p Prompt, maxOutput int64) Estimate {
	m := e.models.find(family, model)
	var k kind
	if m != nil {
		k = m.kind
	}
	if m == nil || m.shared {
		k = nameOf(family, model)
	}
	raw := min(e.text(k, p)+k.frame(p)+k.media(p), most)
	est := Estimate{Family: family, Model: model, Max: min(max(maxOutput, 0), most), raw: raw}
	est.Input = min(m.correct(raw), most)
	est.Output = m.output(est.Max)
	return est
}

// text is the tokens of all texts of a prompt.
func (e *Estimator) text(k kind, p Prompt) int64 {
	unread := (min(max(p.Bytes, 0), most)+3)/4 + min(max(p.Numbers, 0), most)
	if p.Texts == nil {
		return unread
	}
	if v := e.vocabulary(k.encoding); v != nil {
		return unread + v.count(p.Texts, k.weights)
	}
	var all profile
	for s := range p.Texts {
		all.add(s)
	}
	return unread + (k.weights.milli(&all)+999)/1000
}

// vocabulary is that of an encoding, loaded, nil if there is none.
func (e *Estimator) vocabulary(enc encoding) *vocabulary {
	var v *vocabulary
	switch enc {
	case o200k:
		v = &e.o200k
	case cl100k:
		v = &e.cl100k
	default:
		return nil
	}
	v.load(enc)
	return v
}
