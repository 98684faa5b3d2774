package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Units that are given back are spent ones of the present window: never those that calls in flight hold. So the remainder is
// the amount without what is spent and held, after any history of calls, costs above their holds, and gifts.
func TestGivenUnitsAreSpentOnes(t *testing.T) {
	const amount = 1000
	for name, l := range map[string]limit.Limit{
		"calendar": {Name: "money", Unit: limit.USD, Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Month, Scope: "user"},
		"rolling":  {Name: "money", Unit: limit.USD, Shape: limit.Rolling, Rate: bucket.Rate{Amount: amount, Per: 1000 * time.Hour}, Scope: "user"},
	} {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		for range 300 {
			r, err := limit.NewRegistry(0, l)
			if err != nil {
				t.Fatal(err)
			}
			if given, ok := r.Give(0, "ada", 5); given != 0 || ok {
				t.Fatalf("%s: an unknown key got %d, %t", name, given, ok)
			}
			var open []*limit.Charges
			var spent, held int64
			now := time.Second
			for range 60 {
				now += time.Duration(random.Int64N(int64(time.Minute)))
				switch n := 1 + random.Int64N(200); random.IntN(3) {
				case 0:
					p := new(limit.Charges)
					p.AddBudget(limit.Charge{Registry: r, Key: "ada", Cost: n}, n)
					if v := p.Take(now); v.OK {
						open, held = append(open, p), held+n
					}
				case 1:
					if len(open) == 0 {
						continue
					}
					p := open[0]
					open = open[1:]
					held -= p.Charge(0).Cost
					p.Settle(now, map[string]int64{limit.USD: n})
					spent += n
				case 2:
					want := min(n, spent)
					if given, ok := r.Give(now, "ada", n); spent+held > 0 && (given != want || !ok) {
						t.Fatalf("%s, seed %d: %d of %d spent units were given back, %t, want %d", name, seed, given, spent, ok, want)
					}
					spent -= want
				}
				if v, _ := r.Peek(now, "ada"); v.Left != max(0, amount-spent-held) {
					t.Fatalf("%s, seed %d: %d left with %d spent and %d held", name, seed, v.Left, spent, held)
				}
			}
		}
	}
}
