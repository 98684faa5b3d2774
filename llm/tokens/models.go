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
	maxName   = 200 // in bytes

	// others is the name of the entry that further models share.
	others = "(other)"
)

type key struct {
	family llm.Family
	model  string
}

// models has the learned data of all models. Every call reads it, and it rarely changes, so a change copies the map.
type models struct {
	known atomic.Pointer[map[key]*model]
	mu    sync.Mutex // held while changing known
}

// find returns the data of a model, or nil.
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

// place returns the entry of a model and creates it if necessary. Only an answer creates an entry, so that invalid names
// take no space.
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
	ratios  = 31 // number of answers in the median of the factor
	answers = 64 // number of answers from which the next length is estimated

	// A call with few tokens gives little information, because its overhead exceeds its text. Each call therefore counts
	// this many additional tokens as estimated correctly.
	sure = 16

	one = 1000 // the factor is in thousandths
)

// A model is the learned data of a model.
type model struct {
	kind   kind
	shared bool // used by several models; kind belongs to one of them

	factor  atomic.Int32                    // of the input, in thousandths; 0 means one
	expects [len(ceilings) + 1]atomic.Int32 // expected output by maximum output; 0 means unknown

	mu      sync.Mutex
	calls   int64
	ratio   window
	lengths [len(ceilings) + 1]window
	all     window
}

// ceilings separates answers by the maximum output of the request, because a request that allows 64 tokens expects
// another kind of answer than one with 4,096. The first entry is for requests without a maximum.
var ceilings = [...]int64{0, 64, 256, 1024, 4096, 16384}

func ceiling(allowed int64) int {
	at, _ := slices.BinarySearch(ceilings[:], allowed)
	return at
}

// correct applies the learned factor to an estimate of input.
func (m *model) correct(raw int64) int64 {
	if m == nil {
		return raw
	}
	f := int64(cmp.Or(m.factor.Load(), one))
	return max(((raw+sure)*f+one/2)/one-sure, min(raw, 1))
}

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

// Observe corrects the data of a model with the usage that an answer reports. It ignores impossible numbers, and no
// single number changes the estimates much. The input is multiplied by the median ratio of usage to estimate in the last
// 31 answers, between a quarter and four. The expected output is what nine of ten of the last 64 answers with a similar
// maximum did not exceed.
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
	if len(m.ratio.last) == 0 { // limits the effect of the first answers
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

// A View is the learned data of one model.
type View struct {
	Family llm.Family `json:"family"`
	Model  string     `json:"model"`
	Calls  int64      `json:"calls"`  // number of answers
	Factor float64    `json:"factor"` // multiplies estimates of input
	Mean   int64      `json:"mean"`   // mean output in tokens of the last 64 answers
	High   int64      `json:"high"`   // output in tokens that nine of ten of them did not exceed
}

// All iterates over the learned data of all models, sorted by family and name.
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
