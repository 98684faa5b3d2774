package limit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A wall is a clock that tests set. It shows begin at the instant 0.
type wall struct {
	clock.Clock
	begin time.Time
}

func (w *wall) Wall(at time.Duration) time.Time { return w.begin.Add(at) }

func fixedLimit(amount int64, every bucket.Period, zone string) Limit {
	return Limit{Name: "quota", Shape: Fixed, Rate: bucket.Rate{Amount: amount}, Every: every, Zone: zone}
}

func when(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// quota is a limiter and its clock, which begins at the time.
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

// set has the clock on the wall show the time at the instant, and the limiter notice.
func (w *wall) set(m *Limiter, now time.Duration, shown time.Time) {
	w.begin = shown.Add(-now)
	m.shaped().(*fixed).almanac.look.Store(0)
}

const hour = time.Hour

// A day of 23 hours and one of 25 have the same amount each.
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
	for range 9 {
		turn, wait, ok := m.Take(0, 1, 2*time.Minute)
		if !ok {
			break
		}
		if due := m.Due(0, turn); due != wait {
			t.Errorf("take said %v, due says %v", wait, due)
		}
		got = append(got, wait/time.Second)
	}
	if want := []time.Duration{0, 0, 0, 10, 10, 10, 70, 70, 70}; !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	if _, wait, ok := m.Take(0, 1, 2*time.Minute); ok || wait != 130*time.Second {
		t.Errorf("one more than two minutes hold waits %v, %v", wait, ok)
	}
	if v := m.Look(10 * time.Second); v.Left != 0 || v.Reset != time.Minute {
		t.Errorf("in the window of the first who wait: %+v", v)
	}
	if v := m.Look(70 * time.Second); v.Left != 0 || v.Reset != time.Minute {
		t.Errorf("in the window of the others: %+v", v)
	}
	if v := m.Look(130 * time.Second); v.Left != 3 {
		t.Errorf("after them: %+v", v)
	}
}

// Nobody overtakes who waits for a window to come, and his place is free again when
// he leaves.
func TestThoseWhoWaitForAWindowAreInOrder(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	m.Try(0, 5)
	large, wait, ok := m.Take(0, 8, hour)
	if !ok || wait != time.Minute {
		t.Fatalf("waits %v, %v", wait, ok)
	}
	if m.Try(0, 1) || m.Ask(0, 2) != time.Minute || m.Ask(0, 3) != 2*time.Minute {
		t.Error("somebody overtakes")
	}
	m.Back(0, large, bucket.All)
	if !m.Try(0, 5) || m.Try(0, 1) {
		t.Error("what was left is not there")
	}
}

// What comes back after its window has ended is no part of the next one.
func TestARefundCountsInItsWindowOnly(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	early, _, _ := m.Take(0, 6, 0)
	late, wait, _ := m.Take(0, 6, hour)
	if m.Back(0, early, 2); wait != time.Minute {
		t.Fatalf("waits %v", wait)
	}
	m.Back(0, late, 1)
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
		if _, wait, ok := m.Take(0, n, bucket.Never); ok || wait != bucket.Never || m.Ask(0, n) != bucket.Never {
			t.Errorf("%d: %v, %v", n, wait, ok)
		}
	}
	if _, wait, ok := m.Take(0, 0, 0); !ok || wait != 0 || m.Look(0).Left != 10 {
		t.Error("nothing costs something")
	}
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T00:00:00Z")}
	if err := m.Wait(t.Context(), w, 11); !errors.Is(err, ErrTooMuch) {
		t.Errorf("got %v", err)
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

// Midnight that comes again gives nothing again.
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
	if turn, wait, ok := m.Take(time.Minute, 2, hour); !ok || wait != 2*time.Minute || m.Due(time.Minute, turn) != wait {
		t.Errorf("waits %v, %v", wait, ok)
	}
	if v := m.Look(3 * time.Minute); v.Left != 4 || v.Paused != 0 || v.Reset != 24*hour {
		t.Errorf("at midnight: %+v", v)
	}
}

// A clock that was years ahead costs what is left of the present window, no years.
func TestAWallThatWasWrongByYears(t *testing.T) {
	m, w := quota(t, fixedLimit(10, bucket.Day, ""), "2030-06-01T12:00:00Z")
	m.Try(0, 4)
	waits, _, _ := m.Take(0, 9, 24*hour)
	w.set(m, hour, when(t, "2026-01-01T18:00:00Z"))
	if v := m.Look(hour); v.Left != 0 || v.Reset != 6*hour || m.Due(hour, waits) != 6*hour {
		t.Errorf("%+v, who waits is due in %v", v, m.Due(hour, waits))
	}
	if v := m.Look(7 * hour); v.Left != 1 || m.Due(7*hour, waits) != 0 || m.lapsed(7*hour, waits) {
		t.Errorf("the next day: %+v", v)
	}
	if v := m.Look(31 * hour); v.Left != 10 {
		t.Errorf("the day after: %+v", v)
	}
}

// A laptop sleeps, and only the clock on the wall goes on.
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

// A pause moves those who wait to windows that are not over when it ends, and they
// stay in order.
func TestAPauseBeyondTheWindow(t *testing.T) {
	m, _ := quota(t, fixedLimit(10, bucket.Minute, ""), "2026-01-01T00:00:00Z")
	m.Try(0, 10)
	first, _, _ := m.Take(0, 7, hour)
	second, _, _ := m.Take(0, 7, hour)
	m.Pause(0, 90*time.Second)
	third, wait, ok := m.Take(0, 3, hour)
	if !ok || wait != 2*time.Minute || m.Due(0, first) != 90*time.Second || m.Due(0, second) != 2*time.Minute {
		t.Errorf("they wait %v, %v and %v", m.Due(0, first), m.Due(0, second), wait)
	}
	for _, c := range []struct {
		now  time.Duration
		turn Turn
	}{{90 * time.Second, first}, {2 * time.Minute, second}, {2 * time.Minute, third}} {
		if m.Due(c.now, c.turn) != 0 || m.lapsed(c.now, c.turn) || !m.Usable(c.now, c.turn) {
			t.Errorf("at %v: due in %v", c.now, m.Due(c.now, c.turn))
		}
	}
	if v := m.Look(3 * time.Minute); v.Left != 10 || m.Usable(3*time.Minute, third) {
		t.Errorf("after them: %+v", v)
	}
	m.Pause(3*time.Minute, 200*time.Second)
	if _, wait, ok := m.Take(3*time.Minute, 4, hour); !ok || wait != 20*time.Second {
		t.Errorf("in a pause within the window: %v, %v", wait, ok)
	}
}

func TestSetOfAQuota(t *testing.T) {
	l := fixedLimit(10, bucket.Minute, "")
	m, _ := quota(t, l, "2026-01-01T00:00:00Z")
	m.Try(0, 6)
	small, _, _ := m.Take(0, 5, hour)
	large, _, _ := m.Take(0, 9, hour)
	l.Amount = 8
	if !m.Set(0, l) || m.Look(0).Full != 8 {
		t.Fatalf("the smaller amount: %+v", m.Look(0))
	}
	if m.lapsed(0, small) || !m.lapsed(0, large) || m.Due(0, small) != time.Minute {
		t.Error("who fits must stay, who does not must ask again")
	}
	m.Back(0, small, bucket.All)
	if v := m.Look(0); v.Left != 2 {
		t.Errorf("%d left, want 2", v.Left)
	}
	for name, other := range map[string]Limit{
		"zone": fixedLimit(8, bucket.Minute, "Asia/Kathmandu"), "period": fixedLimit(8, bucket.Day, ""), "shape": rolling(8, time.Minute), "nothing": {},
	} {
		if m.Set(0, other) {
			t.Errorf("another %s is taken for the same limit", name)
		}
	}
}

// A registry goes on where the calendar stays, and begins empty where it changes.
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
	waits, _, _ := r.Get(0, "a").Take(0, 17, 24*hour)
	l.Zone = "America/Los_Angeles"
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	a := r.Get(0, "a")
	if v := a.Look(0); v.Left != 0 || v.Reset != 20*hour {
		t.Errorf("another zone: %+v", v)
	}
	// Midnight of UTC, for which somebody still waits, is in the present day.
	if v := a.Look(20 * hour); v.Left != 20 || waits.Cost != 17 {
		t.Errorf("the next day: %+v", v)
	}
}

// Who waits when his limiter is replaced is counted by the one in its place.
func TestReplacedQuotasCountThoseWhoWait(t *testing.T) {
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T00:00:30Z")}
	l := fixedLimit(10, bucket.Minute, "")
	r := must(NewRegistry(0, l, WithWall(w)))(t)
	old := r.Get(0, "")
	old.Try(0, 10)
	turn, _, _ := old.Take(0, 4, hour)
	l.Every = bucket.Second
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	now := 30 * time.Second
	if old.Due(now, turn) != 0 || old.lapsed(now, turn) || !old.Retired() {
		t.Error("who waits has lost his turn")
	}
	if v := r.Get(now, "").Look(now); v.Left != 6 {
		t.Errorf("%d left in the second in which 4 go, want 6", v.Left)
	}
}

// Keys that share a limiter for want of room leave it with nothing to gain.
func TestQuotasThatShareOneLimiter(t *testing.T) {
	w := &wall{Clock: clock.System, begin: when(t, "2026-01-01T00:00:30Z")}
	l := fixedLimit(10, bucket.Minute, "")
	l.Scope, l.MaxKeys = "tenant", 1
	r := must(NewRegistry(0, l, WithWall(w)))(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		r.Get(0, key).Try(0, 1)
	}
	shared := r.Get(0, "e")
	shared.Try(0, 10)
	waits, _, ok := shared.Take(0, 4, hour)
	now := 30 * time.Second // the others are full again
	if !ok || shared != r.Get(0, "f") {
		t.Fatal("e and f do not share")
	}
	own := r.Get(now, "e")
	if own == shared || own.Look(now).Left != 0 || shared.Due(now, waits) != 0 {
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
	if m.retire(0) || m.retire(6*hour-1) {
		t.Error("forgotten in its window")
	}
	if !m.retire(6*hour) || !m.Retired() || m.Try(6*hour, 1) || m.retire(6*hour) {
		t.Error("not forgotten after it")
	}
}

// Many goroutines at once, through many windows, in which the clock runs as fast as
// they ask.
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
				turn, _, ok := m.Take(now, n, time.Duration(rng.IntN(3))*time.Second)
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
				counts[turn.Place] += n // the windows have names of their own there
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
	if n := testing.AllocsPerRun(1000, func() { m.Take(0, 1, 0) }); n != 0 {
		t.Errorf("a yes allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { m.Owe(0, 1e6); m.Look(0) }); n != 0 {
		t.Errorf("a debt allocates %v times", n)
	}
	m.Owe(0, 1e9)
	if n := testing.AllocsPerRun(1000, func() { m.Take(0, 1, time.Second) }); n != 0 {
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

// Whichever limiter a key has, its own or one that it shares for want of room, no
// window gives it more than the amount.
func TestSharingExceedsNoKeysQuota(t *testing.T) {
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
