package limit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func budgetOf(amount int64, hold limit.Hold) limit.Limit {
	return limit.Limit{Name: "money", Unit: limit.USD, Shape: limit.Calendar, Every: bucket.Day, Hold: hold, Rate: bucket.Rate{Amount: amount}}
}

// In every history, nothing is held after all calls have ended, and the spent units are the sum of their costs. When a
// call is admitted, spent and held units together do not exceed the amount. Only costs above the hold can exceed it.
func TestBudgetHoldsEndExactlyOnce(t *testing.T) {
	for name, l := range map[string]limit.Limit{
		"calendar": budgetOf(1000, limit.HoldLearned),
		"rolling":  {Name: "money", Unit: limit.USD, Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: 100 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			for range 2000 {
				budgetHistory(t, r, l)
			}
		})
	}
}

func budgetHistory(t *testing.T, r *rand.Rand, l limit.Limit) {
	now := time.Duration(0)
	reg, err := limit.NewRegistry(now, l, limit.WithWall(wallAt{clock.System, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}))
	if err != nil {
		t.Fatal(err)
	}
	var flights []*limit.Charges
	var spent, over int64
	look := func() limit.Level { return reg.Get(now, "").Look(now) }
	for range 60 {
		now += time.Duration(r.IntN(1000)) * time.Millisecond
		if r.IntN(2) == 0 {
			p := new(limit.Charges)
			expected := 1 + r.Int64N(60)
			p.AddBudget(limit.Charge{Registry: reg, Cost: expected}, expected+r.Int64N(100))
			before := look()
			v := p.Take(now)
			switch cost := p.Charge(0).Cost; {
			case v.OK && spent+before.Held+cost > l.Amount:
				t.Fatalf("admitted %d with %d spent and %d held of %d", cost, spent, before.Held, l.Amount)
			case v.OK:
				flights = append(flights, p)
			case before.Held > 0 && before.Left+before.Held >= expected && v.Wait > time.Second:
				t.Fatalf("a call that costs %d waits %v with %d left and %d held", expected, v.Wait, before.Left, before.Held)
			case before.Held == 0 && v.Wait < time.Minute:
				t.Fatalf("a call that costs %d waits only %v with %d left and nothing held", cost, v.Wait, before.Left)
			}
			continue
		}
		if len(flights) == 0 {
			continue
		}
		i := r.IntN(len(flights))
		p := flights[i]
		flights = append(flights[:i], flights[i+1:]...)
		spent += end(r, now, p, &over)
		if r.IntN(3) == 0 { // a second end has no effect
			p.Settle(now, map[string]int64{limit.USD: 50})
			p.Drop(now)
		}
	}
	for _, p := range flights {
		spent += end(r, now, p, &over)
	}
	if v := look(); v.Held != 0 || v.Left != max(0, l.Amount-spent) || spent-over > l.Amount {
		t.Fatalf("at the end %d are held and %d left, want 0 and %d; %d above holds", v.Held, v.Left, l.Amount-spent, over)
	}
}

// end ends a call in one of the possible ways, and returns what it costs. over counts what exceeds the hold.
func end(r *rand.Rand, now time.Duration, p *limit.Charges, over *int64) int64 {
	held := p.Charge(0).Cost
	switch r.IntN(5) {
	case 0: // not sent
		p.Drop(now)
		return 0
	case 1: // no usage is known
		p.Settle(now, nil)
		return held
	case 2: // failed
		p.Unbilled(now, nil)
		p.Settle(now, nil)
		return 0
	}
	used := r.Int64N(2 * held)
	*over += max(0, used-held)
	if r.IntN(2) == 0 { // failed, with a cost
		p.Unbilled(now, map[string]int64{limit.USD: used})
	}
	p.Settle(now, map[string]int64{limit.USD: used})
	return used
}

// A call that begins in one window charges nothing to the next one.
func TestBudgetChargesTheWindowInWhichTheCallBegan(t *testing.T) {
	at := time.Date(2026, 11, 28, 23, 59, 59, 0, time.UTC)
	wall := wallAt{clock.System, at}
	reg, err := limit.NewRegistry(0, budgetOf(100, limit.HoldLearned), limit.WithWall(wall))
	if err != nil {
		t.Fatal(err)
	}
	var before, after limit.Charges
	before.AddBudget(limit.Charge{Registry: reg, Cost: 60}, 60)
	after.AddBudget(limit.Charge{Registry: reg, Cost: 30}, 30)
	if !before.Take(0).OK || !after.Take(2*time.Second).OK {
		t.Fatal("not admitted")
	}
	before.Settle(3*time.Second, map[string]int64{limit.USD: 90})
	if v := reg.Get(3*time.Second, "").Look(3 * time.Second); v.Left != 70 || v.Held != 30 {
		t.Errorf("%d left and %d held, want 70 and 30", v.Left, v.Held)
	}
}

// A wallAt is a clock with a wall clock that shows at at the instant 0.
type wallAt struct {
	clock.Clock
	at time.Time
}

func (w wallAt) Wall(now time.Duration) time.Time { return w.at.Add(now) }

func TestBudgetsAreShownInDollars(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00", 1: "0.000001", 12_400_000: "12.40", 125: "0.000125", -2_500_000: "-2.50", 25_000_000_000: "25000.00"} {
		if got := limit.Dollars(n); got != want {
			t.Errorf("Dollars(%d) = %s, want %s", n, got, want)
		}
	}
	if got := budgetOf(25_000_000, limit.HoldLearned).String(); got != "25.00 USD a day (UTC)" {
		t.Error(got)
	}
	bad := limit.Limit{Name: "money", Unit: limit.USD, Rate: bucket.Rate{Amount: 25, Per: time.Hour}}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "unit usd: a budget is an amount per window") {
		t.Error(err)
	}
	var h limit.Hold
	if fmt.Sprint(limit.HoldMost, h.UnmarshalText([]byte("most")), h) != "most <nil> most" || h.UnmarshalText([]byte("all")) == nil {
		t.Error(h)
	}
}

// A decision about a budget allocates nothing.
func BenchmarkBudget(b *testing.B) {
	reg, err := limit.NewRegistry(0, budgetOf(1<<50, limit.HoldLearned))
	if err != nil {
		b.Fatal(err)
	}
	used := map[string]int64{limit.USD: 90}
	b.ReportAllocs()
	var p limit.Charges
	for b.Loop() {
		p.Reset()
		p.AddBudget(limit.Charge{Registry: reg, Cost: 100}, 1000)
		if !p.Take(time.Second).OK {
			b.Fatal("refused")
		}
		p.Settle(time.Second, used)
	}
}

func TestBudgetDecisionDoesNotAllocate(t *testing.T) {
	reg, err := limit.NewRegistry(0, budgetOf(1<<50, limit.HoldLearned))
	if err != nil {
		t.Fatal(err)
	}
	var p limit.Charges
	used := map[string]int64{limit.USD: 90}
	if n := testing.AllocsPerRun(100, func() {
		p.Reset()
		p.AddBudget(limit.Charge{Registry: reg, Cost: 100}, 1000)
		p.Take(time.Second)
		p.Settle(time.Second, used)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
