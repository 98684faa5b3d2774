package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A wall is a wall clock that tests set. It shows begin at the instant 0.
type wall struct {
	clock.Clock
	begin time.Time
}

func (w *wall) Wall(at time.Duration) time.Time { return w.begin.Add(at) }

func fixedLimit(amount int64, every bucket.Period, zone string) Limit {
	return Limit{Name: "quota", Shape: Calendar, Rate: bucket.Rate{Amount: amount}, Every: every, Zone: zone}
}

func when(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// quota returns a limiter and its clock, which starts at this time.
func quota(t testing.TB, l Limit, begin string) (*Limiter, *wall) {
	t.Helper()
	w := &wall{Clock: clock.System, begin: when(t, begin)}
	return must(NewRegistry(0, l, WithWall(w)))(t).Get(0, ""), w
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// set makes the wall clock show a time at an instant, and makes the limiter notice.
func (w *wall) set(m *Limiter, now time.Duration, shown time.Time) {
	w.begin = shown.Add(-now)
	m.bucket.instead().(*byCalendar).calendar.look.Store(0)
}

const hour = time.Hour

// Days of 23 and of 25 hours have the same amount.
func TestQuotaThroughDaysOfOtherLengths(t *testing.T) {
	for _, c := range []struct {
		begin string
		days  []time.Duration
	}{
		{"2026-03-07T00:00:00-08:00", []time.Duration{24 * hour, 23 * hour, 24 * hour}},
		{"2026-10-31T00:00:00-07:00", []time.Duration{24 * hour, 25 * hour, 24 * hour}},
	} {
		m, _ := quota(t, fixedLimit(25, bucket.Day, "America/Los_Angeles"), c.begin)
		now := time.Duration(0)
		for i, day := range c.days {
			got, end := 0, now+day
			for ; now < end; now += 10 * time.Minute {
				for m.Try(now, 1) {
					got++
				}
				if v := m.Look(now); v.Left != 0 || v.Reset != end-now || !v.ResetAt.Equal(when(t, c.begin).Add(end)) {
					t.Fatalf("%v: %+v, want the reset in %v", c.begin, v, end-now)
				}
				if wait := m.Ask(now, 1); wait != end-now {
					t.Fatalf("%v: to wait %v, want %v", c.begin, wait, end-now)
				}
			}
			if got != 25 {
				t.Errorf("%v, day %d: %d went, want 25", c.begin, i, got)
			}
		}
	}
}

func TestWaitForTheNextWindows(t *testing.T) {
	m, _ := quota(t, fixedLimit(3, bucket.Minute, ""), "2026-01-01T00:00:50Z")
	var got []time.Duration
	for range 3 {
		_, wait, ok := m.Take(0, 1)
		if !ok {
			t.Fatalf("waits %v", wait)
		}
		got = append(got, wait)
	}
	for ahead := range int64(7) {
		got = append(got, m.After(0, ahead, 1)/time.Second)
	}
	if want := []time.Duration{0, 0, 0, 10, 10, 10, 70, 70, 70, 130}; !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	for _, now := range []time.Duration{10 * time.Second, 70 * time.Second} { // they proceed when predicted
		for range 3 {
			if m.Try(now-1, 1) || !m.Try(now, 1) {
				t.Errorf("goes before %v, or not then", now)
			}
		}
		if v := m.Look(now); v.Left != 0 || v.Reset != time.Minute {
			t.Errorf("in their window: %+v", v)
		}
	}
	if v := m.Look(130 * time.Second); v.Left != 3 {
		t.Errorf("after them: %+v", v)
	}
}

// A call that waits for a later window holds no units of the present or the later window.
func TestWhoWaitsForAWindowHoldsNothing(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	m.Try(0, 5)
	if _, wait, ok := m.Take(0, 8); ok || wait != time.Minute {
		t.Fatalf("waits %v, %v", wait, ok)
	}
	if !m.Try(0, 5) || m.Try(0, 1) || m.Look(time.Minute).Left != 10 {
		t.Error("what was left is not there")
	}
}

// Units that return after the end of their window do not count in the next one.
func TestARefundCountsInItsWindowOnly(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	early, _, _ := m.Take(0, 6)
	m.Back(0, early, 2)
	late, wait, ok := m.Take(time.Minute, 6)
	if !ok {
		t.Fatalf("waits %v", wait)
	}
	m.Back(time.Minute, late, 1)
	if v := m.Look(time.Minute); v.Left != 5 {
		t.Errorf("%d left, want 5", v.Left)
	}
	m.Back(time.Minute, early, 4)
	if v := m.Look(time.Minute); v.Left != 5 {
		t.Errorf("%d left after a late refund, want 5", v.Left)
	}
	m.Back(time.Minute, late, 2)
	if v := m.Look(time.Minute); v.Left != 7 {
		t.Errorf("%d left, want 7", v.Left)
	}
	m.Back(2*time.Minute, late, 3)
	if v := m.Look(2 * time.Minute); v.Left != 10 {
		t.Errorf("%d left in the next window, want 10", v.Left)
	}
}

func TestDebtEndsWithItsWindow(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	m.Try(0, 8)
	m.Owe(0, 1<<62)
	if v := m.Look(0); v.Left != 0 || m.Ask(0, 1) != time.Minute {
		t.Errorf("%+v", v)
	}
	if v := m.Look(time.Minute); v.Left != 10 {
		t.Errorf("the next window: %+v", v)
	}
}

func TestCostsThatNoWindowHolds(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Day, ""), "2026-01-01T00:00:00Z")
	for _, n := range []int64{11, -1, 1 << 62} {
		if _, wait, ok := m.Take(0, n); ok || wait != bucket.Never || m.Ask(0, n) != bucket.Never {
			t.Errorf("%d: %v, %v", n, wait, ok)
		}
	}
	if _, wait, ok := m.Take(0, 0); !ok || wait != 0 || m.Look(0).Left != 10 {
		t.Error("nothing costs something")
	}
}

func TestAWallThatIsSetWithinTheWindow(t *testing.T) {
	m, w := quota(t, fixedLimit(10, bucket.Day, ""), "2026-01-01T12:00:00Z")
	m.Try(0, 4)
	for _, shown := range []string{"2026-01-01T20:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T23:59:59Z"} {
		w.set(m, hour, when(t, shown))
		if v := m.Look(hour); v.Left != 6 || v.Paused != 0 || v.Reset != when(t, "2026-01-02T00:00:00Z").Sub(when(t, shown)) {
			t.Errorf("%s: %+v", shown, v)
		}
	}
}

// When the clock is set back over midnight, the second midnight grants nothing.
func TestAWallThatIsSetBackOverMidnight(t *testing.T) {
	m, w := quota(t, fixedLimit(10, bucket.Day, ""), "2026-01-01T23:59:00Z")
	m.Try(0, 10)
	if !m.Try(time.Minute, 4) {
		t.Fatal("no new day")
	}
	w.set(m, time.Minute, when(t, "2026-01-01T23:58:00Z"))
	if v := m.Look(time.Minute); v.Left != 6 || v.Paused != 2*time.Minute || m.Try(time.Minute, 1) {
		t.Errorf("the day before is open again: %+v", v)
	}
	if _, wait, ok := m.Take(time.Minute, 2); ok || wait != 2*time.Minute {
		t.Errorf("waits %v, %v", wait, ok)
	}
	if v := m.Look(3 * time.Minute); v.Left != 6 || v.Paused != 0 || v.Reset != 24*hour {
		t.Errorf("at midnight: %+v", v)
	}
}

// A clock that was years ahead costs the rest of the present window, not years.
func TestAWallThatWasWrongByYears(t *testing.T) {
	m, w := quota(t, fixedLimit(10, bucket.Day, ""), "2030-06-01T12:00:00Z")
	m.Try(0, 4)
	w.set(m, hour, when(t, "2026-01-01T18:00:00Z"))
	if v := m.Look(hour); v.Left != 0 || v.Reset != 6*hour || m.Ask(hour, 9) != 6*hour {
		t.Errorf("%+v, who waits is due in %v", v, m.Ask(hour, 9))
	}
	if !m.Try(7*hour, 9) || m.Look(7*hour).Left != 1 {
		t.Errorf("the next day: %+v", m.Look(7*hour))
	}
	if v := m.Look(31 * hour); v.Left != 10 {
		t.Errorf("the day after: %+v", v)
	}
}

// While a laptop sleeps, only the wall clock advances.
func TestTheWallIsLookedAtOnceASecond(t *testing.T) {
	m, w := quota(t, fixedLimit(10, bucket.Day, ""), "2026-01-01T12:00:00Z")
	m.Try(0, 10)
	w.begin = w.begin.Add(24 * hour)
	if m.Try(time.Second-1, 1) {
		t.Error("looked at more than once a second")
	}
	if !m.Try(time.Second, 1) {
		t.Error("not looked at within a second")
	}
}

// Calls that wait for the end of a pause proceed one after the other, in windows that are not over by then.
func TestAPauseBeyondTheWindow(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	m.Try(0, 10)
	m.Pause(0, 90*time.Second)
	if first, second, third := m.After(0, 0, 7), m.After(0, 7, 7), m.After(0, 14, 3); first != 90*time.Second || second != 2*time.Minute || third != 2*time.Minute {
		t.Errorf("they wait %v, %v and %v", first, second, third)
	}
	for _, now := range []time.Duration{90 * time.Second, 2 * time.Minute} {
		if m.Try(now-1, 7) || !m.Try(now, 7) {
			t.Errorf("goes before %v, or not then", now)
		}
	}
	if !m.Try(2*time.Minute, 3) {
		t.Error("the third does not go with the second")
	}
	if v := m.Look(3 * time.Minute); v.Left != 10 {
		t.Errorf("after them: %+v", v)
	}
	m.Pause(3*time.Minute, 200*time.Second)
	if wait := m.Ask(3*time.Minute, 4); wait != 20*time.Second {
		t.Errorf("in a pause within the window: %v", wait)
	}
}

func TestSetOfAQuota(t *testing.T) {
	l := fixedLimit(10, bucket.Minute, "")
	m, _ := quota(t, l, "2026-01-01T00:00:00Z")
	m.Try(0, 6)
	l.Amount = 8
	if !m.setLimit(0, l) || m.Look(0).Full != 8 {
		t.Fatalf("the smaller amount: %+v", m.Look(0))
	}
	if v := m.Look(0); v.Left != 2 {
		t.Errorf("%d left, want 2", v.Left)
	}
	for name, other := range map[string]Limit{
		"zone": fixedLimit(8, bucket.Minute, "Asia/Kathmandu"), "period": fixedLimit(8, bucket.Day, ""), "shape": rollingLimit(8, time.Minute), "nothing": {},
	} {
		if m.setLimit(0, other) {
			t.Errorf("another %s is taken for the same limit", name)
		}
	}
}

// A registry keeps its usage if the calendar stays the same, and starts with none if it changes.
func TestSetOfARegistryOfQuotas(t *testing.T) {
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T12:00:00Z")}
	l := fixedLimit(10, bucket.Day, "")
	l.Scope = "tenant"
	r := must(NewRegistry(0, l, WithWall(w)))(t)
	r.Get(0, "a").Try(0, 4)
	l.Amount = 20
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	if a, b := r.Get(0, "a").Look(0).Left, r.Get(0, "b").Look(0).Left; a != 16 || b != 20 {
		t.Errorf("%d and %d left, want 16 and 20", a, b)
	}
	old := r.Get(0, "a")
	l.Zone = "America/Los_Angeles"
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	a := r.Get(0, "a")
	if v := a.Look(0); v.Left != 0 || v.Reset != 20*hour || !old.shape().retired() || old.Try(0, 1) {
		t.Errorf("another zone: %+v", v)
	}
	if v := a.Look(20 * hour); v.Left != 20 {
		t.Errorf("the next day: %+v", v)
	}
}

// Keys that share a limiter because there is no room gain nothing by leaving it.
func TestQuotasThatShareOneLimiter(t *testing.T) {
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T00:00:30Z")}
	l := fixedLimit(10, bucket.Minute, "")
	l.Scope, l.MaxKeys = "tenant", 1
	r := must(NewRegistry(0, l, WithWall(w)))(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		r.Get(0, key).Try(0, 1)
	}
	shared := r.Get(0, "e")
	now := 30 * time.Second // the other keys are full again
	if !shared.Try(0, 10) || shared != r.Get(0, "f") || !shared.Try(now, 4) {
		t.Fatal("e and f do not share")
	}
	own := r.Get(now, "e")
	if own == shared || own.Look(now).Left != 0 || shared.Try(now, 1) {
		t.Errorf("its own: %+v", own.Look(now))
	}
	if v := own.Look(now + time.Minute); v.Left != 10 {
		t.Errorf("in the next window: %+v", v)
	}
}

func TestAnEmptyQuotaFillsAtItsReset(t *testing.T) {
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T18:00:00Z")}
	l := fixedLimit(10, bucket.Day, "")
	l.Scope = "tenant"
	r := must(NewEmpty(0, l, WithWall(w)))(t)
	for _, key := range []string{"", "a"} {
		if r.Get(0, key).Try(0, 1) || r.Get(6*hour, key).Look(6*hour).Left != 10 {
			t.Errorf("%q: %+v", key, r.Get(6*hour, key).Look(6*hour))
		}
	}
}

func TestIdleQuotasAreForgotten(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Day, ""), "2026-01-01T18:00:00Z")
	m.Try(0, 1)
	if m.shape().retire(0) || m.shape().retire(6*hour-1) {
		t.Error("forgotten in its window")
	}
	if !m.shape().retire(6*hour) || !m.shape().retired() || m.Try(6*hour, 1) || m.shape().retire(6*hour) {
		t.Error("not forgotten after it")
	}
}

// Many goroutines take from a limit through many windows. The clock advances as fast as they ask.
func TestManyAskForAQuotaAtOnce(t *testing.T) {
	m, _ := quota(t, fixedLimit(100, bucket.Second, ""), "2026-01-01T00:00:00Z")
	var mu sync.Mutex
	counts := make(map[int64]int64)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 4000 {
				now := time.Duration(i) * time.Second / 400
				n := 1 + rng.Int64N(3)
				turn, _, ok := m.Take(now, n)
				switch {
				case !ok:
					continue
				case rng.IntN(4) == 0:
					m.Back(now, turn, bucket.All)
					continue
				case rng.IntN(50) == 0:
					m.Pause(now, now+time.Millisecond)
				}
				mu.Lock()
				counts[turn.Place] += n // turns identify windows
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var sum int64
	for window, n := range counts {
		if sum += n; n > 100 {
			t.Errorf("%d went in window %d", n, window)
		}
	}
	if sum < int64(len(counts))*50 {
		t.Errorf("only %d went in %d windows of 100", sum, len(counts))
	}
}

func TestDecisionsOfAQuotaDoNotAllocate(t *testing.T) {
	m, _ := quota(t, fixedLimit(1e9, bucket.Day, "America/Los_Angeles"), "2026-01-01T00:00:00Z")
	if n := testing.AllocsPerRun(1000, func() { m.Take(0, 1) }); n != 0 {
		t.Errorf("a yes allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { m.Owe(0, 1e6); m.Look(0) }); n != 0 {
		t.Errorf("a debt allocates %v times", n)
	}
	m.Owe(0, 1e9)
	if n := testing.AllocsPerRun(1000, func() { m.Take(0, 1) }); n != 0 {
		t.Errorf("a no allocates %v times", n)
	}
}

func BenchmarkQuota(b *testing.B) {
	for _, amount := range []int64{1 << 40, 1} {
		b.Run(fmt.Sprint(amount), func(b *testing.B) {
			r := must(NewRegistry(clock.System.Now(), fixedLimit(amount, bucket.Day, "America/Los_Angeles")))(b)
			m := r.Get(0, "")
			b.ReportAllocs()
			for b.Loop() {
				m.Try(clock.System.Now(), 1)
			}
		})
	}
}

// Whether a key has its own limiter or shares one, no window grants it more than the amount.
func TestSharingExceedsNoKeysQuota(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	shared := 0
	cases(t, 1000, func(rng *rand.Rand) error {
		l := fixedLimit(1+rng.Int64N(8), bucket.Second, "")
		l.Scope, l.MaxKeys = "tenant", 1+rng.IntN(3)
		r, err := NewRegistry(0, l, WithWall(&wall{Clock: clock.System, begin: time.Unix(1e9, 0)}))
		if err != nil {
			return err
		}
		v := &throng{rng: rng, r: r, levels: map[string]*level{}, went: map[string][]holder{}, paused: map[string]time.Duration{}}
		for step := range 200 {
			if err := v.step(); err != nil {
				return fmt.Errorf("%v, step %d: %w", l, step, err)
			}
		}
		shared += v.shared
		for key, went := range v.went {
			used := make(map[time.Duration]int64)
			for _, h := range went {
				if used[h.at/time.Second] += h.n; used[h.at/time.Second] > l.Amount {
					return fmt.Errorf("%v: key %s: %d in the second %v", l, key, used[h.at/time.Second], h.at)
				}
			}
		}
		return nil
	})
	if shared == 0 {
		t.Error("no keys shared a limiter")
	}
}
