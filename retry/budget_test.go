package retry_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func budget(t testing.TB, c retry.BudgetConfig) *retry.Budget {
	t.Helper()
	b, err := retry.NewBudget(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drain requests retries until one is refused, at most limit.
func drain(p retry.Purse, now time.Duration, o outcome.Outcome, limit int) (n int) {
	for n < limit {
		if _, ok := p.Retry(now, &o); !ok {
			break
		}
		n++
	}
	return n
}

func TestBudgetDefaults(t *testing.T) {
	if got, want := (retry.BudgetConfig{}).WithDefaults(), (retry.BudgetConfig{Share: 0.1, Window: 10 * time.Second, Floor: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b := budget(t, retry.BudgetConfig{})
	if got := b.Left(0); got != 10 {
		t.Errorf("without calls %d retries are left, want the floor's 10", got)
	}
	for range 1000 {
		b.Call(time.Second)
	}
	if got := b.Left(time.Second); got != 110 {
		t.Errorf("after 1000 calls %d are left, want 110", got)
	}
	if got := drain(b, 2*time.Second, outcome.Outcome{}, 1000); got != 110 {
		t.Errorf("granted %d, want 110", got)
	}
	if got := b.Left(2 * time.Second); got != 0 {
		t.Errorf("%d left, want 0", got)
	}
	if got := b.Left(13 * time.Second); got != 10 {
		t.Errorf("a window later %d are left, want 10", got)
	}
}

func TestBudgetSharesAreExact(t *testing.T) {
	for _, tt := range []struct {
		share float64
		calls int
		want  int64
	}{{0.1, 30, 3}, {0.29, 100, 29}, {0.7, 10, 7}, {0.333, 3, 0}, {0.333334, 3, 1}, {1, 5, 5}, {2, 5, 10}} {
		b := budget(t, retry.BudgetConfig{Share: tt.share, Floor: 1e-6})
		for range tt.calls {
			b.Call(0)
		}
		if got := b.Left(0); got != tt.want {
			t.Errorf("%v of %d calls: %d retries, want %d", tt.share, tt.calls, got, tt.want)
		}
	}
}

func TestBudgetOff(t *testing.T) {
	b := budget(t, retry.BudgetConfig{Off: true})
	b.Call(0)
	for range 1000 {
		paid, ok := b.Retry(0, nil)
		if !ok {
			t.Fatal("refused")
		}
		b.Unspent(0, paid)
	}
	if got := b.Left(0); got != math.MaxInt64 {
		t.Errorf("%d left", got)
	}
}

func TestZeroPursesRefuse(t *testing.T) {
	for name, p := range map[string]retry.Purse{"budget": &retry.Budget{}, "quota": &retry.Quota{}} {
		p.Call(0)
		p.Success(0, 0)
		if _, ok := p.Retry(0, &outcome.Outcome{}); ok {
			t.Errorf("the zero %s grants a retry", name)
		}
		p.Unspent(0, 0)
	}
}

func TestBudgetTakesBackWhatWasNotSpent(t *testing.T) {
	b := budget(t, retry.BudgetConfig{})
	first, _ := b.Retry(0, nil)
	drain(b, 9*time.Second, outcome.Outcome{}, 100)
	if b.Left(9*time.Second) != 0 {
		t.Fatal("not empty")
	}
	b.Unspent(9*time.Second, first)
	if got := b.Left(9 * time.Second); got != 1 {
		t.Errorf("%d left, want 1", got)
	}
	// The instant of the grant determines when it leaves the window, not the instant of its return.
	if got := b.Left(11 * time.Second); got != 1 {
		t.Errorf("%d left later, want 1", got)
	}
	paid, _ := b.Retry(11*time.Second, nil)
	b.Unspent(time.Hour, paid)
	if got := b.Left(time.Hour); got != 10 {
		t.Errorf("%d left after an hour, want 10", got)
	}
}

func TestBudgetValidateReportsEveryMistakeAtOnce(t *testing.T) {
	_, err := retry.NewBudget(retry.BudgetConfig{Share: -1, Window: time.Millisecond, Floor: math.NaN()})
	if err == nil {
		t.Fatal("no mistake found")
	}
	for _, want := range []string{"share -1: ", "window 1ms: ", "floor NaN: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %v", want, err)
		}
	}
}

// A ledger is a simple sliding window: a list of instants.
type ledger []time.Duration

func (l ledger) since(from, to time.Duration) (n int64) { // (from, to]
	for _, at := range l {
		if from < at && at <= to {
			n++
		}
	}
	return n
}

// TestBudgetAgainstLedgers compares every grant with exact lists, and every refusal with lists that are one step stricter.
func TestBudgetAgainstLedgers(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	grants, refusals := 0, 0
	for run := range 1500 {
		c := retry.BudgetConfig{
			Share: 0.01 + r.Float64(), Window: time.Duration(1+r.IntN(20)) * time.Second, Floor: 0.01 + r.Float64()/2,
		}
		b := budget(t, c)
		var calls, retries ledger
		now := time.Duration(r.Int64N(int64(time.Hour)))
		for range 120 {
			now += time.Duration(r.ExpFloat64() * float64(c.Window) / 60)
			if r.IntN(3) > 0 {
				b.Call(now)
				calls = append(calls, now)
				continue
			}
			// Share and floor are rounded to millionths, up or down.
			affords := func(step time.Duration, millionth float64) bool {
				return float64(retries.since(now-c.Window-step, now)+1) <=
					(c.Share+millionth)*float64(calls.since(now-c.Window+step, now))+c.Floor*c.Window.Seconds()+millionth
			}
			paid, ok := b.Retry(now, nil)
			switch {
			case ok && !affords(0, 1e-6):
				t.Fatalf("seed %d run %d: %+v granted too much at %v", seed, run, c, now)
			case !ok && affords(c.Window/32, -1e-6):
				t.Fatalf("seed %d run %d: %+v refused at %v what it could afford", seed, run, c, now)
			case !ok:
				refusals++
			case r.IntN(8) == 0:
				b.Unspent(now, paid)
			default:
				grants++
				retries = append(retries, now)
			}
		}
	}
	if grants < 10_000 || refusals < 10_000 {
		t.Errorf("seed %d: %d grants and %d refusals", seed, grants, refusals)
	}
}

// TestBudgetHoldsForManyGoroutines makes calls and retries in 64 goroutines at full speed while time advances.
func TestBudgetHoldsForManyGoroutines(t *testing.T) {
	const goroutines, each = 64, 2000
	b := budget(t, retry.BudgetConfig{})
	var clock atomic.Int64 // a tick per operation: 25s in total
	var calls, granted atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				now := time.Duration(clock.Add(int64(100 * time.Microsecond)))
				b.Call(now)
				calls.Add(1)
				now = time.Duration(clock.Add(int64(100 * time.Microsecond)))
				if _, ok := b.Retry(now, nil); ok {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	elapsed := time.Duration(clock.Load())
	most := 0.1*float64(calls.Load()) + (elapsed + 10*time.Second).Seconds()
	if got := float64(granted.Load()); got > most || got < 0.8*most {
		t.Errorf("granted %v retries to %d calls in %v, want a little under %v", got, calls.Load(), elapsed, most)
	}
}

func TestBudgetGrantsAtOneInstantAreExact(t *testing.T) {
	for range 50 {
		b := budget(t, retry.BudgetConfig{})
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 10 {
					b.Call(time.Second)
				}
			})
		}
		wg.Wait()
		for range 64 {
			wg.Go(func() { granted.Add(int64(drain(b, time.Second, outcome.Outcome{}, 100))) })
		}
		wg.Wait()
		if got := granted.Load(); got != 74 {
			t.Fatalf("640 calls earned %d retries, want 64 and the floor's 10", got)
		}
	}
}

func TestBudgetIgnoresAClockReadTooEarly(t *testing.T) {
	b := budget(t, retry.BudgetConfig{})
	n := 0
	for i := range 1000 {
		now := time.Minute
		if i%2 == 1 {
			now = time.Second // waited between reading the clock and the lock
		}
		if _, ok := b.Retry(now, nil); ok {
			n++
		}
	}
	if n != 10 {
		t.Errorf("granted %d, want 10", n)
	}
}

// TestBudgetBoundsAnOutage checks the load in an outage: at most 1.1 attempts per call, and the floor.
func TestBudgetBoundsAnOutage(t *testing.T) {
	b, c := budget(t, retry.BudgetConfig{}), retry.Config{}
	calls, attempts, refused := 0, 0, 0
	for now := time.Duration(0); now < time.Minute; now += 5 * time.Millisecond {
		calls++
		b.Call(now)
		for n := 1; ; n++ {
			attempts++
			o := outcome.Outcome{Class: outcome.Failed}
			if !c.Decide(retry.Attempt{Number: n, Outcome: o, Safe: true}, nil).Again {
				break
			}
			if _, ok := b.Retry(now, &o); !ok {
				refused++
				break
			}
		}
	}
	if most := 1.1*float64(calls) + 70; float64(attempts) > most || float64(attempts) < 1.08*float64(calls) {
		t.Errorf("%d attempts for %d calls, want just under %v", attempts, calls, most)
	}
	if refused == 0 {
		t.Error("nothing refused")
	}
}

func TestBudgetAllocatesNothing(t *testing.T) {
	b := budget(t, retry.BudgetConfig{})
	if n := testing.AllocsPerRun(1000, func() { b.Call(time.Second); b.Retry(time.Second, nil) }); n >= 1 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkBudgetCall(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		p, now := budget(b, retry.BudgetConfig{}), time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 100
			p.Call(now)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		p := budget(b, retry.BudgetConfig{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			now := time.Duration(0)
			for pb.Next() {
				now += 100
				p.Call(now)
			}
		})
	})
}

func BenchmarkBudgetRetry(b *testing.B) {
	p := budget(b, retry.BudgetConfig{})
	b.ReportAllocs()
	for b.Loop() {
		p.Retry(time.Second, nil)
	}
}
