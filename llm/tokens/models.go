package tokens

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed1158cd35/weir/llm"
)

const (
	maxModels = 1000
	maxName   = 200 // bytes

	// others is the name of the place that models share for which there is no other.
	others = "(other)"
)

type key struct {
	family llm.Family
	model  string
}

// models are all that have been heard of. They are read with every call and change
// seldom, so a change copies the map.
type models struct {
	known atomic.Pointer[map[key]*model]
	mu    sync.Mutex // of those who change it
}

// find is what is known of a model, nil if nothing.
func (ms *models) find(family llm.Family, name string) *model {
	known := ms.known.Load()
	if known == nil {
		return nil
	}
	if m := (*known)[key{family, name}]; m != nil || len(*known) < maxModels {
		return m
	}
	return (*known)[key{family, others}]
}

// place is where to keep what is learnt of a model. A name gets a place only when an
// answer has come, so that names that no provider knows take up none.
func (ms *models) place(family llm.Family, name string) *model {
	if m := ms.find(family, name); m != nil {
		return m
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.find(family, name); m != nil {
		return m
	}
	old := map[key]*model{}
	if known := ms.known.Load(); known != nil {
		old = *known
	}
	k := key{family, strings.Clone(name)}
	if len(old) >= maxModels || len(name) > maxName {
		k.model = others
	}
	if m := old[k]; m != nil {
		return m
	}
	next := maps.Clone(old)
	next[k] = &model{kind: nameOf(family, name), shared: k.model == others}
	ms.known.Store(&next)
	return next[k]
}

const (
	ratios  = 31 // answers that the factor is the median of
	answers = 64 // answers that the length of the next is read from

	// A call of few tokens says little: what wraps it counts more than its text.
	// This many tokens are taken to have been estimated right in every call.
	sure = 16

	one = 1000 // the factor is kept in thousandths
)

// A model is what is known of one.
type model struct {
	kind   kind
	shared bool // by several: kind is that of one of them

	factor  atomic.Int32                    // of the input, in thousandths; 0 means one
	expects [len(ceilings) + 1]atomic.Int32 // what answers take, by what they may take; 0 means not known

	mu      sync.Mutex
	calls   int64
	ratio   window
	lengths [len(ceilings) + 1]window
	all     window
}

// ceilings sort answers by what the request allows them, for who allows 64 tokens
// wants another kind of answer than who allows 4,096. The first is for requests that
// say nothing.
var ceilings = [...]int64{0, 64, 256, 1024, 4096, 16384}

func ceiling(allowed int64) int {
	at, _ := slices.BinarySearch(ceilings[:], allowed)
	return at
}

// correct is an estimate of input after what was learnt.
func (m *model) correct(raw int64) int64 {
	if m == nil {
		return raw
	}
	f := int64(cmp.Or(m.factor.Load(), one))
	return max(((raw+sure)*f+one/2)/one-sure, min(raw, 1))
}

// output is what an answer is expected to take.
func (m *model) output(allowed int64) int64 {
	expected := int64(DefaultOutput)
	if m != nil {
		expected = int64(cmp.Or(m.expects[ceiling(allowed)].Load(), DefaultOutput))
	}
	if allowed > 0 {
		return min(expected, allowed)
	}
	return expected
}

// Observe corrects what is known of a model by what an answer reports. A number that
// cannot be true is passed over, and no single one that could moves the estimates far:
// the input is corrected by the median of what the last 31 answers took against what
// was estimated, within a quarter and four times; the output is what nine of ten of
// the last 64 answers did not exceed that were allowed about as much.
func (e *Estimator) Observe(est Estimate, input, output int64) {
	okIn := input > 0 && input <= most && est.raw > 0
	okOut := output > 0 && output <= most
	if !okIn && !okOut {
		return
	}
	m := e.models.place(est.Family, est.Model)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if okIn {
		m.learnInput(est.raw, input)
	}
	if okOut {
		m.learnOutput(est.Max, output)
	}
}

func (m *model) learnInput(raw, input int64) {
	if len(m.ratio.last) == 0 { // so that the first answers alone decide little
		m.ratio.add(one, ratios)
		m.ratio.add(one, ratios)
	}
	ratio := (input + sure) * one / (raw + sure)
	m.ratio.add(int32(min(max(ratio, one/4), 4*one)), ratios)
	m.factor.Store(m.ratio.median())
}

func (m *model) learnOutput(allowed, output int64) {
	at := ceiling(allowed)
	m.lengths[at].add(int32(output), answers)
	m.expects[at].Store(m.lengths[at].high())
	m.all.add(int32(output), answers)
}

// A View is what has been learnt of one model.
type View struct {
	Family llm.Family `json:"family"`
	Model  string     `json:"model"`
	Calls  int64      `json:"calls"`  // answers heard
	Factor float64    `json:"factor"` // by which estimates of its input are multiplied
	Mean   int64      `json:"mean"`   // tokens of output, of the last 64 answers
	High   int64      `json:"high"`   // tokens that nine of ten of them did not exceed
}

// All is what has been learnt of each model, by family and name.
func (e *Estimator) All() iter.Seq[View] {
	return func(yield func(View) bool) {
		known := e.models.known.Load()
		if known == nil {
			return
		}
		order := func(a, b key) int {
			return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.model, b.model))
		}
		for _, k := range slices.SortedFunc(maps.Keys(*known), order) {
			if !yield((*known)[k].view(k)) {
				return
			}
		}
	}
}

func (m *model) view(k key) View {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := View{Family: k.family, Model: k.model, Calls: m.calls, Mean: m.all.mean()}
	v.Factor = float64(cmp.Or(m.factor.Load(), one)) / one
	if len(m.all.sorted) > 0 {
		v.High = int64(m.all.high())
	}
	return v
}
