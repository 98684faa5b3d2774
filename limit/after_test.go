package limit

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A heard implements a leased limiter with the last report of a store about a limit of 10/s with a burst of 100.
type heard struct {
	Leased
	left   int64
	reset  time.Duration
	paused time.Duration
}

func (h heard) Ask(time.Duration, int64) time.Duration { return h.paused }
func (h heard) Look(time.Duration) Level {
	return Level{Left: h.left, Full: 100, PerSecond: 10, Reset: h.reset}
}

// No call waits for the remaining units of a shared burst, or for units that have come since the report.
func TestWhatIsLeftOfASharedBurstIsNotToldAsAWait(t *testing.T) {
	for _, c := range []struct {
		heard
		ahead, n int64
		want     time.Duration
	}{
		{heard{left: 100}, 50, 1, 0},
		{heard{left: 100}, 99, 1, 0},
		{heard{left: 100}, 119, 1, 2 * time.Second},
		{heard{left: 40, reset: 6 * time.Second}, 59, 1, 2 * time.Second},
		{heard{left: 40, reset: 2 * time.Second}, 79, 1, 0}, // reported 4 s ago
		{heard{left: 0, reset: 10 * time.Second, paused: 5 * time.Second}, 49, 1, 5 * time.Second},
		{heard{left: 0, reset: 10 * time.Second, paused: 20 * time.Second}, 109, 1, 21 * time.Second},
	} {
		if got := NewLeased(c.heard).After(0, c.ahead, c.n); got != c.want {
			t.Errorf("%+v: %d behind %d wait %v, want %v", c.heard, c.n, c.ahead, got, c.want)
		}
	}
}

// Returned units count for both calls: the second gets the units that the first leaves.
func TestRoomCountsAllThatCameBack(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}))
	first, _, _ := m.Take(0, 5)
	if !m.Try(0, 5) {
		t.Fatal("the burst is 10")
	}
	m.Back(0, first, bucket.All)
	for n := range int64(8) {
		if got, want := m.Room(0, n, 0, 5-min(n, 4)), n < 5; got != want {
			t.Errorf("5 came back: %d beside %d: %v, want %v", n, 5-min(n, 4), got, want)
		}
	}
	if !m.Room(0, 3, 200*time.Millisecond, 4) || m.Room(0, 3, 200*time.Millisecond, 5) {
		t.Error("5 came back and 2 come in 200ms: 3 now leave 4 for then, and no more")
	}
}
