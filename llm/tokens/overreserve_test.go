package tokens

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

// TestEstimatesReserveLittleMoreThanCallsUse checks the factor k by which calls reserve more than they use. Long calls
// that share a limit can use 1/k of the rate, plus one burst.
func TestEstimatesReserveLittleMoreThanCallsUse(t *testing.T) {
	for _, c := range []struct {
		name          string
		input, output int64   // medians
		spread        float64 // standard deviation of the logarithm
		allowed       int64
		most          float64 // maximum k after 200 calls have reported usage
	}{
		{"chat", 1000, 300, 0.8, 4096, 1.6},
		{"long prompts", 20_000, 500, 0.8, 4096, 1.2},
		{"short answers", 500, 50, 0.5, 1024, 1.2},
		{"writing", 300, 1500, 0.5, 8192, 2},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		var e Estimator
		var first, reserved, used float64
		for i := range 1200 {
			input := max(1, int64(float64(c.input)*math.Exp(rng.NormFloat64()*c.spread)))
			output := min(c.allowed, max(1, int64(float64(c.output)*math.Exp(rng.NormFloat64()*c.spread))))
			est := e.Estimate(llm.Anthropic, claudeName, bytesOf(input), c.allowed)
			e.Observe(est, input, output)
			if i == 0 {
				first = float64(est.Total()) / float64(input+output)
			}
			if i >= 200 {
				reserved, used = reserved+float64(est.Total()), used+float64(input+output)
			}
		}
		k := reserved / used
		if t.Logf("%s: k is %.2f, and %.2f of the first call", c.name, k, first); k > c.most || k < 1 {
			t.Errorf("%s: calls reserve %.2f times what they use, want from 1 to %.2f", c.name, k, c.most)
		}
	}
}
