package tokens

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

const claudeName = "claude-sonnet-4-5"

func bytesOf(tokens int64) Prompt { return Prompt{Bytes: tokens * 4} }

// If a model uses between half and twice the estimate, with random variations of 10%, estimates are within 10% after 30
// calls.
func TestEstimatesConvergeInThirtyCalls(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		var e Estimator
		truth := math.Exp2(2*r.Float64() - 1)
		for range 30 {
			est := e.Estimate(llm.Anthropic, claudeName, bytesOf(500+r.Int64N(7500)), 0)
			noise := 0.9 + 0.2*r.Float64()
			e.Observe(est, int64(float64(est.raw)*truth*noise), 100)
		}
		est := e.Estimate(llm.Anthropic, claudeName, bytesOf(500+r.Int64N(7500)), 0)
		want := float64(est.raw) * truth
		if off := float64(est.Input)/want - 1; math.Abs(off) > 0.10 {
			t.Fatalf("seed %d: estimated %d, took %.0f: %.1f %% off", seed, est.Input, want, 100*off)
		}
	}
}

// Invalid usage in up to one of three answers does no harm.
func TestNonsenseDoesNoHarm(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	nonsense := []int64{0, -1, math.MinInt64, 1_000_000_000_000, math.MaxInt64, 1, 19_999_999}
	for range 1000 {
		var e Estimator
		for i := range 60 {
			est := e.Estimate(llm.Gemini, "gemini-2.5-flash", bytesOf(1000), 0)
			input, output := est.raw*3/2, int64(200)
			if i%3 == 2 {
				input = nonsense[r.IntN(len(nonsense))]
			}
			e.Observe(est, input, output)
		}
		est := e.Estimate(llm.Gemini, "gemini-2.5-flash", bytesOf(1000), 0)
		if off := float64(est.Input)/(1.5*float64(est.raw)) - 1; math.Abs(off) > 0.10 {
			t.Fatalf("seed %d: estimated %d, took %d", seed, est.Input, est.raw*3/2)
		}
		if est.Output != 200 {
			t.Fatalf("seed %d: %d of output expected, want 200", seed, est.Output)
		}
	}
}

func TestFactorStaysWithinBounds(t *testing.T) {
	for _, c := range []struct {
		took int64
		want float64
	}{{1, 0.25}, {10_000_000, 4}} {
		var e Estimator
		for range 50 {
			e.Observe(e.Estimate(llm.Gemini, "gemini-2.5-pro", bytesOf(1000), 0), c.took, 1)
		}
		for v := range e.All() {
			if v.Factor != c.want {
				t.Errorf("calls that took %d: factor %v, want %v", c.took, v.Factor, c.want)
			}
		}
	}
}

func TestOneAnswerAloneDecidesNothing(t *testing.T) {
	var e Estimator
	est := e.Estimate(llm.Gemini, "gemini-2.5-pro", bytesOf(1000), 0)
	e.Observe(est, 4*est.raw, 10)
	if got := e.Estimate(llm.Gemini, "gemini-2.5-pro", bytesOf(1000), 0).Input; got != est.Input {
		t.Errorf("after one answer %d are estimated, want %d as before", got, est.Input)
	}
}

func TestOutputIsWhatNineOfTenDoNotExceed(t *testing.T) {
	var e Estimator
	ask := func(allowed int64) Estimate { return e.Estimate(llm.Anthropic, claudeName, bytesOf(100), allowed) }
	if got := ask(0).Output; got != DefaultOutput {
		t.Errorf("nothing learnt: %d, want %d", got, DefaultOutput)
	}
	if got := ask(64_000).Output; got != DefaultOutput {
		t.Errorf("nothing learnt, 64,000 allowed: %d, want %d", got, DefaultOutput)
	}
	for i := range int64(60) {
		e.Observe(ask(4096), 100, 10*(i+1))
		e.Observe(ask(16), 100, 4)
	}
	if got := ask(4000).Output; got < 530 || got > 560 {
		t.Errorf("answers of 10 to 600 tokens: %d expected, want about 550", got)
	}
	if got := ask(16).Output; got != 4 {
		t.Errorf("short answers: %d expected, want 4", got)
	}
	if got := ask(0).Output; got != DefaultOutput {
		t.Errorf("answers to other requests changed what is expected here to %d", got)
	}
	if got, want := ask(4000).Most(), ask(4000).Input+4000; got != want {
		t.Errorf("most is %d, want %d", got, want)
	}
}

func TestModelsAreBounded(t *testing.T) {
	var e Estimator
	for i := range 3 * maxModels {
		est := e.Estimate(llm.OpenAI, fmt.Sprintf("made-up-%d", i), bytesOf(100), 0)
		e.Observe(est, 300, 30)
	}
	views := slices.Collect(e.All())
	if len(views) > maxModels+1 {
		t.Errorf("%d models are kept, want at most %d", len(views), maxModels+1)
	}
	if i := slices.IndexFunc(views, func(v View) bool { return v.Model == others }); i < 0 || views[i].Calls != 2*maxModels {
		t.Errorf("no place for the others, or not %d calls there", 2*maxModels)
	}
	if got := e.Estimate(llm.OpenAI, "made-up-2999", bytesOf(100), 0); got.Input < 250 {
		t.Errorf("a model among the others is estimated at %d, want what was learnt of them", got.Input)
	}
}

func TestNamesThatNoProviderKnowsTakeNoPlace(t *testing.T) {
	var e Estimator
	for i := range 100 {
		e.Estimate(llm.OpenAI, fmt.Sprintf("made-up-%d", i), bytesOf(100), 0)
	}
	if got := len(slices.Collect(e.All())); got != 0 {
		t.Errorf("%d models are kept without an answer of any", got)
	}
}

func TestEstimatorIsShared(t *testing.T) {
	var e Estimator
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				p := Prompt{Texts: slices.Values([]string{english, code}), Messages: 2}
				model := []string{"gpt-4o", "gpt-4", claudeName, fmt.Sprint("m", i%7)}[(g+i)%4]
				est := e.Estimate(llm.OpenAI, model, p, int64(i))
				e.Observe(est, est.Input, 50)
				for range e.All() {
				}
			}
		})
	}
	wg.Wait()
}

func TestSillyPromptsAreEstimated(t *testing.T) {
	var e Estimator
	for _, p := range []Prompt{
		{}, {Messages: -5, Names: -1, Tools: -1, PDF: -1, Audio: -1, Video: -1, Bytes: -1, Numbers: -1},
		{PDF: math.MaxInt64, Audio: math.MaxInt64, Video: math.MaxInt64, Bytes: math.MaxInt64, Numbers: math.MaxInt64},
		{Images: []Image{{}, {Width: -1, Height: 5}, {Width: math.MaxInt, Height: math.MaxInt}, {Width: 1, Height: math.MaxInt}, {Bytes: 1}}},
	} {
		for _, model := range []string{"", "gpt-4o", "claude", "claude-", "gemini"} {
			for _, allowed := range []int64{math.MinInt64, 0, math.MaxInt64} {
				est := e.Estimate(llm.OpenAI, model, p, allowed)
				if est.Input < 0 || est.Input > most || est.Output < 0 || est.Most() < est.Total() {
					t.Errorf("%q: %+v is estimated as %+v", model, p, est)
				}
			}
		}
	}
}

func TestTwoWordsOfOnePlaceAreBothRemembered(t *testing.T) {
	var v vocabulary
	v.load(o200k)
	const one, two, three = 1<<20 | 6, 2<<20 | 6, 3<<20 | 7
	v.remember(one, 1)
	v.remember(two, 2)
	for h, want := range map[uint64]int64{one: 1, two: 2} {
		if n, ok := v.known(h); !ok || n != want {
			t.Errorf("the word %x has %d tokens (%v), want %d", h, n, ok, want)
		}
	}
	v.remember(three, 3)
	if _, ok := v.known(one); ok {
		t.Error("the oldest of three was kept")
	}
	if n, ok := v.known(two); !ok || n != 2 {
		t.Errorf("the newer of two was forgotten for a third")
	}
}
