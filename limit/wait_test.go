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
)

// A line is callers of Wait who came one after the other, and when each got
// through.
type line struct {
	m      *Limiter
	start  time.Duration
	wg     sync.WaitGroup
	mu     sync.Mutex
	got    []int
	at     []time.Duration
	refuse []error
}

// emptied is a limiter with nothing left and no one in front of it.
func emptied(t *testing.T, r bucket.Rate) *line {
	t.Helper()
	now := clock.System.Now()
	m, err := New(now, limitOf(r))
	if err != nil {
		t.Fatal(err)
	}
	for m.Try(now, 1) {
	}
	return &line{m: m, start: now}
}

// join lets the caller i wait, and returns once he does.
func (q *line) join(ctx context.Context, i int, n int64) {
	q.wg.Go(func() {
		err := q.m.Wait(ctx, clock.System, n)
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
		q := emptied(t, bucket.Rate{Amount: 100, Per: time.Second, Burst: 5})
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

// Half of those who wait leave, in any order. The others get through in time, and
// what the leavers held serves those who come next.
func TestWhoLeavesLosesNothingForOthers(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		synctest.Test(t, func(t *testing.T) {
			q := emptied(t, bucket.Rate{Amount: 100, Per: time.Second, Burst: 5})
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

// All leave at once, in any order: nobody waits any more, so nobody has to.
func TestAQueueThatLeavesIsGone(t *testing.T) {
	for range 50 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		m := mustNew(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 5}))
		for m.Try(0, 1) {
		}
		var turns []Turn
		for range 1000 {
			turn, _, _ := m.Take(0, 1+rng.Int64N(5), time.Hour)
			turns = append(turns, turn)
		}
		for _, i := range rng.Perm(len(turns)) {
			m.Back(0, turns[i], bucket.All)
		}
		if wait := m.Ask(0, 1); wait != 10*time.Millisecond || m.spare() != nil {
			t.Fatalf("seed %#x: the next waits %v, want 10ms; kept %v", seed, wait, m.spare())
		}
	}
}

// Twenty callers, one after the other, wait and leave. Others have seen the next
// permit pushed twenty intervals away by that.
func TestCancelledWaitsDoNotPushTheNextAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := emptied(t, bucket.Rate{Amount: 20, Per: time.Second, Burst: 1})
		for range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			left := errors.New("left")
			go func() { time.Sleep(time.Microsecond); cancel(left) }()
			if err := q.m.Wait(ctx, clock.System, 1); !errors.Is(err, left) {
				t.Fatalf("got %v, want the cause", err)
			}
		}
		if err := q.m.Wait(t.Context(), clock.System, 1); err != nil {
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
			q := emptied(t, bucket.Rate{Amount: 10, Per: time.Second, Burst: 1})
			gap := 100 * time.Millisecond
			if rolls {
				q.m, _ = New(q.start, rolling(1, gap))
				q.m.Try(q.start, 1)
			}
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
				// A rolling limit lets the first go when the pause ends.
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

// Who is late for his turn, and asks in a pause, waits for its end like all.
func TestWhoComesLateIntoAPauseWaits(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})), mustNew(t, rolling(1, time.Second))} {
		m.Try(0, 1)
		turn, _, _ := m.Take(0, 1, time.Minute)
		m.Pause(2*time.Second, 10*time.Second)
		if due := m.Due(3*time.Second, turn); due != 7*time.Second {
			t.Errorf("due in %v, want 7s", due)
		}
		if due := m.Due(10*time.Second, turn); due != 0 {
			t.Errorf("due in %v after the pause", due)
		}
	}
}

// Those who wait sleep until an instant of the old rate. When the rate grows they
// must not go on top of those who take what comes at the new one.
func TestAFasterRateIsNotUsedTwice(t *testing.T) {
	for _, set := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := bucket.Rate{Amount: 100, Per: time.Second, Burst: 5}
			q := emptied(t, r)
			if set {
				q.m.Set(q.start, limitOf(bucket.Rate{Amount: 50, Per: time.Second, Burst: 5}))
			} else {
				q.m.Pace(q.start, 50)
			}
			for i := range 200 {
				q.join(t.Context(), i, 1)
			}
			if set {
				q.m.Set(q.start, limitOf(r))
			} else {
				q.m.Pace(q.start, 100)
			}
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

// Whose turn is a full burst has it for one instant only, and at odd rates that
// lies between two nanoseconds.
func TestATurnOfAFullBurstIsNotMistakenForPassed(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := bucket.Rate{Amount: 1 + upTo(rng, 1<<35), Per: time.Second, Burst: 1 + rng.Int64N(50)}
		m := mustNew(t, limitOf(r))
		m.Try(0, r.Burst)
		turn, wait, ok := m.Take(0, r.Burst, time.Hour*24*365)
		if !ok || m.overtaken(wait, turn) {
			return fmt.Errorf("%v: waits %v, %v, and is thought to be overtaken", r, wait, ok)
		}
		return nil
	})
}

// A burst of one is over a nanosecond later. Who wakes late, as all do, must go
// even so.
func TestWhoWakesLateKeepsHisTurn(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1}))
	m := r.Get(0, "")
	m.Try(0, 1)
	var p Permit
	p.Add(Charge{r, "", 1})
	v := p.Take(0, time.Hour)
	m.Take(0, 1, time.Hour) // somebody stands behind
	if v = p.Take(v.Wait+time.Millisecond, time.Hour); !v.OK || v.Wait != 0 {
		t.Errorf("got %+v, want to go", v)
	}
}

func TestADeadlineTooNearIsRefusedAtOnce(t *testing.T) {
	for _, rolls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := emptied(t, bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})
			if rolls {
				q.m, _ = New(q.start, rolling(1, time.Second))
				q.m.Try(q.start, 1)
			}
			before := q.m.Look(q.start)
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			err := q.m.Wait(ctx, clock.System, 1)
			if !errors.Is(err, ErrTooLate) || err.Error() != "take 1: turn would come too late: in 1s" {
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
		q := emptied(t, bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		q.join(ctx, 0, 1)
		q.m.Pause(q.start, q.start+time.Minute)
		q.wg.Wait()
		if took := clock.System.Now() - q.start; took != time.Second || !errors.Is(q.refuse[0], ErrTooLate) {
			t.Errorf("got %v after %v, want %v after 1s", q.refuse[0], took, ErrTooLate)
		}
		if wait := q.m.Ask(clock.System.Now(), 1); wait != time.Minute {
			t.Errorf("the next waits %v, want 1m0s: the turn did not come back", wait)
		}
	})
}

func TestWhatCanNeverBeIsRefusedAtOnce(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 5})), mustNew(t, rolling(5, time.Second))} {
		for _, n := range []int64{6, -1, 1 << 62, -1 << 63} {
			if err := m.Wait(t.Context(), clock.System, n); !errors.Is(err, ErrTooMuch) {
				t.Errorf("wait for %d: got %v", n, err)
			}
			if m.Ask(0, n) != bucket.Never || m.Try(0, n) {
				t.Errorf("%d: asked %v", n, m.Ask(0, n))
			}
		}
	}
}

func TestACostOfNothingIsAlwaysMet(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 5})), mustNew(t, rolling(5, time.Second))} {
		m.Try(0, 5)
		m.Take(0, 5, time.Hour)
		m.Pause(0, time.Hour)
		before := m.Look(0)
		turn, wait, ok := m.Take(0, 0, 0)
		if !ok || wait != 0 || m.Ask(0, 0) != 0 || !m.Try(0, 0) {
			t.Errorf("take 0: %v, %v; ask %v", wait, ok, m.Ask(0, 0))
		}
		m.Back(0, turn, bucket.All)
		if after := m.Look(0); after != before {
			t.Errorf("%+v became %+v", before, after)
		}
	}
}

func TestAnEndedContextTakesNothing(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 5}))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := m.Wait(ctx, clock.System, 1); err != gone || m.Look(0).Left != 5 {
		t.Errorf("got %v, %d left", err, m.Look(0).Left)
	}
}

// Callers whose clock readings lie apart, in any order, get no more than the span
// from first to last allows. Others have admitted all of 2,000.
func TestOldClockReadingsMakeNoUnits(t *testing.T) {
	for _, m := range []*Limiter{mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 2})), mustNew(t, rolling(2, 2*time.Second))} {
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
		mustNew(t, rolling(5, time.Second)),
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
