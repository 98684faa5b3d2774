// Package tokens estimates the tokens of a call to a language model before the call, and learns from the usage that
// answers report.
//
// For OpenAI's models, the text is split into words, and the tokenizer's count of each word is cached. Each call counts
// only a few unknown words exactly and estimates the rest. The tokenizer takes 240 to 370 us for 4 KiB, and a call may
// take 100 us in total. An estimate takes about 10 us, and 45 us while no word is cached. New texts have a mean error of
// about 6%. A repeated text is soon counted exactly.
//
// All other texts are estimated from their letters, digits and characters of each script (see classes), with weights for
// the model's vendor. accuracy_test.go has the errors of both methods.
//
// The usage in answers corrects the estimates for each model (see Estimator.Observe). A Rule specifies how much of an
// estimate a provider takes from its limits before it answers.
package tokens

import (
	"iter"

	"github.com/seed1158cd35/weir/llm"
)

// A Prompt has the parts of a request that determine its number of tokens.
type Prompt struct {
	Texts    iter.Seq[string] // everything that the model reads: messages, system prompt, tools as JSON; nil means none
	Messages int              // number of messages, including the system prompt
	Names    int              // number of messages with a name
	Tools    int              // number of functions that the model may call
	Images   []Image
	PDF      int64 // bytes of documents, without base64
	Audio    int64 // bytes of audio
	Video    int64 // bytes of video
	Numbers  int64 // tokens that the prompt gives as numbers
	Bytes    int64 // bytes that could not be parsed; counted as text
}

// An Image is an image in a prompt.
type Image struct {
	Width, Height int   // in pixels; 0 if unknown, which means a large image
	Bytes         int64 // size of the file, used if the sides are unknown; 0 if unknown
	Low           bool  // OpenAI's detail "low"
}

// An Estimate is the expected usage of a call, in tokens.
type Estimate struct {
	Family llm.Family
	Model  string
	Input  int64 // expected input
	Output int64 // expected output, which 9 of 10 similar answers do not exceed
	Max    int64 // maximum output that the request allows; 0 if not set
	raw    int64 // Input before the learned correction
}

// Total returns the expected usage of the call.
func (e Estimate) Total() int64 { return e.Input + e.Output }

// Most returns the maximum usage. The estimated output never exceeds a nonzero Max.
func (e Estimate) Most() int64 { return e.Input + max(e.Output, e.Max) }

const (
	// DefaultOutput is the expected output for a model without known answers, unless the request allows less.
	DefaultOutput = 1024

	// most exceeds every possible number of tokens.
	most = 20_000_000
)

// An Estimator estimates calls and learns from answers. The zero Estimator is ready to use. It is safe for concurrent
// use and must not be copied. It stores up to 1,000 models. All further models share one entry named "(other)".
type Estimator struct {
	models models
	o200k  vocabulary
	cl100k vocabulary
}

// Load loads the data for a model's estimates. For OpenAI's models this takes about 25 ms and 8 MiB of memory. Without
// Load, the first call does it.
func (e *Estimator) Load(family llm.Family, model string) {
	e.vocabulary(nameOf(family, model).encoding)
}

// Estimate returns the expected usage of a call. maxOutput is the maximum output that the request allows, in tokens. 0
// or less means that it is not set.
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

// vocabulary loads and returns the vocabulary of an encoding, or nil if there is none.
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
