package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// A queue contains calls that came one after the other and wait as in the product, and records when each got through.
type queue struct {
	r      *Registry
	m      *Limiter // of the key ""
	lines  *line.Lines
	start  time.Duration
	wg     sync.WaitGroup
	mu     sync.Mutex
	got    []int
	at     []time.Duration
	refuse []error
}

// emptied returns a queue whose limiter has no units left and no waiting calls.
func emptied(t *testing.T, l Limit) *queue {
	t.Helper()
	now := clock.System.Now()
	r, err := NewRegistry(now, l)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{r: r, m: r.Get(now, ""), lines: line.NewLines(clock.System, line.Config{}), start: now}
	for q.m.Try(now, 1) {
	}
	return q
}

// A standing is a waiting call. It asks for its charge when it is first.
type standing struct {
	p     Charges
	until time.Duration
}

func (s *standing) Ask(now, since time.Duration) line.Step {
	switch v := s.p.TakeSince(now, since, 0); {
	case v.OK:
		return line.Step{Kind: line.Go}
	case v.Wait > s.until-now:
		return line.Step{Kind: line.Refuse}
	default:
		return line.Step{Kind: line.Wait, For: v.Wait, Again: time.Second}
	}
}

// wait takes n units, and queues if they are not available.
func (q *queue) wait(ctx context.Context, n int64) error {
	now := clock.System.Now()
	s := &standing{until: bucket.Never - 1}
	if at, ok := clock.System.Deadline(ctx); ok {
		s.until = at
	}
	s.p.Add(Charge{Registry: q.r, Cost: n})
	if q.lines.Empty() && s.p.Take(now).OK {
		return nil
	}
	_, err := q.lines.Wait(ctx, now, &line.Call{Asker: s, Until: s.until}, line.Spot{
		Key: q.r, Cost: time.Second, Units: n,
		After: func(now time.Duration, ahead int64) time.Duration { return q.m.After(now, ahead, n) },
	})
	return err
}

// join starts the wait of caller i, and returns when it waits.
func (q *queue) join(ctx context.Context, i int, n int64) {
	q.wg.Go(func() {
		err := q.wait(ctx, n)
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.refuse = append(q.refuse, err); err == nil {
			q.got, q.at = append(q.got, i), append(q.at, clock.System.Now()-q.start)
		}
	})
	synctest.Wait()
}

func TestWaitersAreServedInOrderExactlyAtTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := emptied(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 5}))
		for i := range 200 {
			q.join(t.Context(), i, 1)
		}
		q.wg.Wait()
		for i := range 200 {
			if want := time.Duration(i+1) * 10 * time.Millisecond; q.got[i] != i || q.at[i] != want {
				t.Fatalf("place %d: caller %d after %v, want caller %d after %v", i, q.got[i], q.at[i], i, want)
			}
		}
	})
}

// Half of the waiting calls leave, in any order. The others get through in time, and later calls do too.
func TestWhoLeavesLosesNothingForOthers(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		synctest.Test(t, func(t *testing.T) {
			q := emptied(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 5}))
			var leave []context.CancelFunc
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				q.join(ctx, i, 1)
				leave = append(leave, cancel)
			}
			for _, i := range rng.Perm(200)[:100] {
				leave[i]()
				synctest.Wait()
			}
			for i := range 100 {
				q.join(t.Context(), 200+i, 1)
			}
			q.wg.Wait()
			took := clock.System.Now() - q.start
			if len(q.got) != 200 || took > 2*time.Second {
				t.Errorf("seed %#x: %d got through in %v, want 200 in 2s", seed, len(q.got), took)
			}
			last := -1
			for _, i := range q.got {
				if i < 200 && i < last {
					t.Errorf("seed %#x: caller %d came after caller %d", seed, i, last)
				}
				if i < 200 {
					last = i
				}
			}
		})
	}
}

// If all units that were taken at one instant come back, in any order, the limiter is as if none had been taken.
func TestAllThatComesBackIsAsIfItHadNotGone(t *testing.T) {
	for range 50 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		m := mustNew(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 5000}))
		var turns []Turn
		for range 1000 {
			turn, _, ok := m.Take(0, 1+rng.Int64N(5))
			if !ok {
				t.Fatalf("seed %#x: refused with %d left", seed, m.Look(0).Left)
			}
			turns = append(turns, turn)
		}
		for _, i := range rng.Perm(len(turns)) {
			m.Back(0, turns[i], bucket.All)
		}
		if left := m.Look(0).Left; left != 5000 || m.bucket.returned() != nil {
			t.Fatalf("seed %#x: %d left of 5,000; kept %v", seed, left, m.bucket.returned())
		}
	}
}

// Twenty callers wait and leave, one after the other. In other libraries that delays the next permit by twenty
// intervals.
func TestCancelledWaitsDoNotPushTheNextAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := emptied(t, limitOf(bucket.Rate{Amount: 20, Per: time.Second, Burst: 1}))
		for range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			left := errors.New("left")
			go func() { time.Sleep(time.Microsecond); cancel(left) }()
			if err := q.wait(ctx, 1); !errors.Is(err, left) {
				t.Fatalf("got %v, want the cause", err)
			}
		}
		if err := q.wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if took := clock.System.Now() - q.start; took > 50*time.Millisecond {
			t.Errorf("the next permit came after %v, want at most 50ms", took)
		}
	})
}

func TestAPauseDelaysAllWhoWait(t *testing.T) {
	for _, rolls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const gap = 100 * time.Millisecond
			l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1})
			if rolls {
				l = rollingLimit(1, gap)
			}
			q := emptied(t, l)
			for i := range 20 {
				q.join(t.Context(), i, 1)
			}
			time.Sleep(time.Second + gap/2)
			now := clock.System.Now()
			q.m.Pause(now, now+5*time.Second)
			q.wg.Wait()
			for i, at := range q.at {
				want := time.Duration(i+1) * gap
				if i >= 10 {
					want += 5 * time.Second
				}
				// A rolling limit lets the first calls proceed when the pause ends.
				if rolls && i >= 10 {
					want -= gap / 2
				}
				if at != want {
					t.Errorf("rolling %v: caller %d got through after %v, want %v", rolls, i, at, want)
				}
			}
		})
	}
}

// A call that comes during a pause waits for its end, even for units that were there before.
func TestWhoComesLateIntoAPauseWaits(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})), mustNew(t, rollingLimit(1, time.Second))} {
		m.Try(0, 1)
		m.Pause(2*time.Second, 10*time.Second)
		if wait := m.Ask(3*time.Second, 1); wait != 7*time.Second || m.Try(10*time.Second-1, 1) {
			t.Errorf("waits %v, want 7s, or goes before", wait)
		}
		if !m.Try(10*time.Second, 1) {
			t.Error("does not go after the pause")
		}
	}
}

// Waiting calls sleep until an instant of the old rate. When the rate grows, they must not proceed in addition to
// calls that use the new rate.
func TestAFasterRateIsNotUsedTwice(t *testing.T) {
	for _, set := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := bucket.Rate{Amount: 100, Per: time.Second, Burst: 5}
			q := emptied(t, limitOf(r))
			if set {
				q.m.setLimit(q.start, limitOf(bucket.Rate{Amount: 50, Per: time.Second, Burst: 5}))
			} else {
				q.m.bucket.pace(q.start, 50)
			}
			for i := range 200 {
				q.join(t.Context(), i, 1)
			}
			if set {
				q.m.setLimit(q.start, limitOf(r))
			} else {
				q.m.bucket.pace(q.start, 100)
			}
			q.lines.Kick()
			for range 6000 {
				time.Sleep(time.Millisecond)
				if now := clock.System.Now(); q.m.Try(now, 1) {
					q.mu.Lock()
					q.at = append(q.at, now-q.start)
					q.mu.Unlock()
				}
			}
			q.wg.Wait()
			if len(q.got) != 200 {
				t.Errorf("set %v: %d of those who waited got through, want 200", set, len(q.got))
			}
			slices.Sort(q.at)
			for i, last := range q.at {
				since, _ := slices.BinarySearch(q.at, last-time.Second+1)
				if n := i + 1 - since; n > 105 {
					t.Fatalf("set %v: %d went in the second before %v, want at most 105", set, n, last)
				}
			}
		})
	}
}

// A full burst is available from one instant on, which at odd rates lies between two nanoseconds.
func TestAFullBurstIsThereWhenItWasTold(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := bucket.Rate{Amount: 1 + upTo(rng, 1<<35), Per: time.Second, Burst: 1 + rng.Int64N(50)}
		m := mustNew(t, limitOf(r))
		m.Try(0, r.Burst)
		_, wait, _ := m.Take(0, r.Burst)
		if _, _, early := m.Take(wait-1, r.Burst); early {
			return fmt.Errorf("%v: goes before the %v that it was told", r, wait)
		}
		if _, again, ok := m.Take(wait, r.Burst); !ok {
			return fmt.Errorf("%v: was told %v and then %v", r, wait, again)
		}
		return nil
	})
}

// A burst of one is over a nanosecond later. A call that wakes late, as all do, must proceed nevertheless, and the
// next one at its own time.
func TestWhoWakesLateKeepsHisTurn(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1}))
	r.Get(0, "").Try(0, 1)
	due := r.Get(0, "").Ask(0, 1)
	for range 10 {
		var p Charges
		p.Add(Charge{r, "", 1})
		now := due + time.Millisecond
		if v := p.TakeSince(now, due, 0); !v.OK || p.Late() != time.Millisecond {
			t.Errorf("got %+v, %v late; want to go", v, p.Late())
		}
		if next := now + r.Get(now, "").Ask(now, 1); next != due+100*time.Millisecond {
			t.Errorf("the next goes %v later, want 100ms", next-due)
		}
		due += 100 * time.Millisecond
	}
}

func TestADeadlineTooNearIsRefusedAtOnce(t *testing.T) {
	for _, rolls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})
			if rolls {
				l = rollingLimit(1, time.Second)
			}
			q := emptied(t, l)
			before := q.m.Look(q.start)
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			err := q.wait(ctx, 1)
			if !errors.Is(err, line.ErrRefused) {
				t.Errorf("rolling %v: got %v", rolls, err)
			}
			if took := clock.System.Now() - q.start; took != 0 {
				t.Errorf("rolling %v: the refusal took %v", rolls, took)
			}
			if after := q.m.Look(q.start); after != before {
				t.Errorf("rolling %v: the refusal changed %+v to %+v", rolls, before, after)
			}
		})
	}
}

func TestAPauseBeyondTheDeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := emptied(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		q.join(ctx, 0, 1)
		q.m.Pause(q.start, q.start+time.Minute)
		q.wg.Wait()
		if took := clock.System.Now() - q.start; took != time.Second || !errors.Is(q.refuse[0], line.ErrRefused) {
			t.Errorf("got %v after %v, want %v after 1s", q.refuse[0], took, line.ErrRefused)
		}
		if wait := q.m.Ask(clock.System.Now(), 1); wait != time.Minute {
			t.Errorf("the next waits %v, want 1m0s", wait)
		}
	})
}

func TestWhatCanNeverBeIsRefusedAtOnce(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 5})), mustNew(t, rollingLimit(5, time.Second))} {
		for _, n := range []int64{6, -1, 1 << 62, -1 << 63} {
			if _, wait, ok := m.Take(0, n); ok || wait != bucket.Never {
				t.Errorf("take %d: wait %v, %v", n, wait, ok)
			}
			if m.Ask(0, n) != bucket.Never || m.Try(0, n) {
				t.Errorf("%d: asked %v", n, m.Ask(0, n))
			}
		}
	}
}

func TestACostOfNothingIsAlwaysMet(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 5})), mustNew(t, rollingLimit(5, time.Second))} {
		m.Try(0, 5)
		m.Pause(0, time.Hour)
		before := m.Look(0)
		turn, wait, ok := m.Take(0, 0)
		if !ok || wait != 0 || m.Ask(0, 0) != 0 || !m.Try(0, 0) {
			t.Errorf("take 0: %v, %v; ask %v", wait, ok, m.Ask(0, 0))
		}
		m.Back(0, turn, bucket.All)
		if after := m.Look(0); after != before {
			t.Errorf("%+v became %+v", before, after)
		}
	}
}

// Callers with different clock readings, in any order, get no more than the time from the first to the last allows.
// Other libraries have admitted all of 2,000.
func TestOldClockReadingsMakeNoUnits(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 2})), mustNew(t, rollingLimit(2, 2*time.Second))} {
		got := 0
		for i := range time.Duration(2000) {
			if m.Try(10*time.Second+i%2*2*time.Second, 1) {
				got++
			}
		}
		if got > 4 {
			t.Errorf("%d went between two instants 2s apart, want at most 4", got)
		}
	}
}

func TestDebtIsMadeUpForFirst(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := bucket.Rate{Amount: 10, Per: time.Second, Burst: 1 + rng.Int64N(10)}
		m := mustNew(t, limitOf(r))
		n := rng.Int64N(3 * longestDebt)
		m.Owe(0, n)
		m.Owe(0, n)
		owed := min(2*n, r.Burst+longestDebt*r.Burst)
		want := max(0, time.Duration(owed+1-r.Burst)*time.Second/10)
		if wait := m.Ask(0, 1); wait < want-time.Microsecond || wait > want+time.Microsecond {
			t.Errorf("burst %d owes twice %d: the next waits %v, want %v", r.Burst, n, wait, want)
		}
		return nil
	})
}

func TestDebtNeverGrowsBeyondReason(t *testing.T) {
	for _, m := range []*Limiter{
		mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: 1461 * 24 * time.Hour, Burst: 1})),
		mustNew(t, limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1})),
		mustNew(t, rollingLimit(5, time.Second)),
	} {
		for range 100 {
			m.Owe(0, 1<<62)
		}
		full := m.Look(0).Reset
		if full <= 0 || full > 18*max(time.Second, 1461*24*time.Hour) || m.Try(0, 1) {
			t.Errorf("after a broken answer everything is there again in %v", full)
		}
	}
}
