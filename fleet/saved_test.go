package fleet

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A part begins empty. A process that was silent for a second has saved and spent at most the units that
// accrued for its part in that second. When it returns, no more of the burst is missing.
func TestShortSilenceCostsOnlyWhatCameForThePart(t *testing.T) {
	for _, c := range []struct {
		silent time.Duration // from when the store counts the part as out
		want   int64         // available units at the return
	}{{0, 100}, {time.Second, 90}, {2 * time.Second, 80}, {9 * time.Second, 10}, {20 * time.Second, 0}} {
		now := time.Unix(1e9, 0)
		m := NewMemory(func() time.Time { return now })
		r := Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 100})}
		b := Beat{Group: "g", Client: "a", Silence: 1e6, Life: 60e6, Wish: 1}
		beat := func() {
			t.Helper()
			b.Seq++
			s, err := m.Beat(t.Context(), &b)
			if err != nil {
				t.Fatal(err)
			}
			b.Ack, b.Gen, b.Part, b.Until = s.No, s.Gen, s.Part, s.Until
		}
		id := uint64(0)
		left := func() int64 {
			t.Helper()
			id++
			a := Ask{Group: "g", ID: id, Lane: 1, Claims: []Claim{{Rule: &r, Cost: 1}}}
			if err := m.Take(t.Context(), &a); err != nil {
				t.Fatal(err)
			}
			return a.Grants[0].Left
		}
		for range 30 {
			beat()
			now = now.Add(300 * time.Millisecond)
		}
		// The latest response may be lost: the part is out one silence after the response before.
		now = now.Add(time.Second - 600*time.Millisecond + c.silent)
		for range 2 { // the second confirms the response to the first
			beat()
		}
		if n := left(); n < c.want-1 || n > c.want {
			t.Errorf("%v out: %d units left at the return, want %d", c.silent, n, c.want)
		}
		// The missing units accrue at the rate of the limit.
		for range 10 {
			now = now.Add(300 * time.Millisecond)
			beat()
		}
		if n, want := left(), min(100, c.want+30); n < want-1 || n > want {
			t.Errorf("%v out: %d units left three seconds after the return, want %d", c.silent, n, want)
		}
	}
}
