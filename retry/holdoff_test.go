package retry

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

func hear(h *Holdoff, now time.Duration, classes ...outcome.Class) {
	for _, c := range classes {
		h.Heard(now, &outcome.Outcome{Class: c})
	}
}

func times(n int, c outcome.Class) (all []outcome.Class) {
	for range n {
		all = append(all, c)
	}
	return all
}

func TestHoldoff(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard []outcome.Class
		holds bool
	}{
		{"nothing heard", nil, false},
		{"nine failures", times(9, outcome.Failed), false},
		{"ten failures", times(10, outcome.Failed), true},
		{"ten throttles", times(10, outcome.Throttled), true},
		{"ten that nobody knows", times(10, outcome.Unknown), true},
		{"a success among them", append(append(times(9, outcome.Failed), outcome.OK), times(9, outcome.Failed)...), false},
		{"an answer that it was the caller's fault", append(append(times(9, outcome.Failed), outcome.Rejected), times(9, outcome.Failed)...), false},
		{"a caller who left", append(append(times(5, outcome.Failed), outcome.Canceled), times(5, outcome.Failed)...), true},
		{"only callers who left", times(50, outcome.Canceled), false},
		{"over", append(times(50, outcome.Failed), outcome.OK), false},
	} {
		var h Holdoff
		hear(&h, time.Second, c.heard...)
		if got := !h.Allows(time.Second); got != c.holds {
			t.Errorf("%s: holds %v, want %v", c.name, got, c.holds)
		}
	}
}

func TestWhatWasNotSentSaysNothingToTheHoldoff(t *testing.T) {
	var h Holdoff
	hear(&h, 0, times(9, outcome.Failed)...)
	h.Heard(0, &outcome.Outcome{Class: outcome.Rejected, Unsent: true})
	if hear(&h, 0, outcome.Failed); h.Allows(0) {
		t.Error("a mistake of the caller's that was never sent counts as an answer")
	}
}

// While no attempt succeeds, one retry is sent at a time, with growing intervals, however many are due.
func TestHeldRetriesGoFurtherAndFurtherApart(t *testing.T) {
	var h Holdoff
	hear(&h, 0, times(10, outcome.Failed)...)
	var at []time.Duration
	for now := time.Duration(0); now < 2*time.Minute; now += time.Millisecond {
		for range 3 {
			if h.Allows(now) {
				at = append(at, now)
				hear(&h, now+20*time.Millisecond, outcome.Failed)
			}
		}
	}
	if len(at) < 15 || len(at) > 25 || at[0] != firstGap {
		t.Errorf("%d retries in two minutes, the first after %v", len(at), at[0])
	}
	for i := range len(at) - 2 {
		if gap, next := at[i+1]-at[i], at[i+2]-at[i+1]; next < gap || next > longestGap+longestGap/10 {
			t.Errorf("after gaps of %v one of %v", gap, next)
		}
	}
	h.Heard(3*time.Minute, &outcome.Outcome{Class: outcome.OK})
	hear(&h, 3*time.Minute, times(10, outcome.Failed)...)
	if h.Allows(3*time.Minute+firstGap-1) || !h.Allows(3*time.Minute+firstGap) {
		t.Error("the gaps do not begin anew")
	}
}

// First attempts also show the state: while they come and fail, no retry is sent.
func TestFirstAttemptsStandInForRetries(t *testing.T) {
	var h Holdoff
	for i := range 1000 {
		now := time.Duration(i) * 50 * time.Millisecond
		hear(&h, now, outcome.Failed)
		if i >= 10 && h.Allows(now+25*time.Millisecond) {
			t.Fatalf("a retry was sent at %v", now)
		}
	}
}

// Of many concurrent requests, one is allowed.
func TestOneRetryGoesAtATime(t *testing.T) {
	for round := range 200 {
		var h Holdoff
		hear(&h, 0, times(10, outcome.Failed)...)
		var went atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if h.Allows(time.Second) {
					went.Add(1)
				}
			})
		}
		wg.Wait()
		if n := went.Load(); n != 1 {
			t.Fatalf("round %d: %d went", round, n)
		}
	}
}

// If every other attempt fails at random, retries are almost never held back.
func TestHoldoffLeavesPartialFaultsAlone(t *testing.T) {
	var h Holdoff
	r := rand.New(rand.NewPCG(1, 1))
	held := 0
	for i := range 100_000 {
		now := time.Duration(i) * 10 * time.Millisecond
		c := outcome.Failed
		if r.IntN(2) == 0 {
			c = outcome.OK
		}
		if hear(&h, now, c); !h.Allows(now) {
			held++
		}
	}
	if held > 300 {
		t.Errorf("%d of 100000 were held back", held)
	}
}

func TestHeardAllocatesNothing(t *testing.T) {
	var h Holdoff
	o := outcome.Outcome{Class: outcome.OK}
	if n := testing.AllocsPerRun(100, func() { h.Heard(0, &o) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
