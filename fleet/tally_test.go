package fleet

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A tally counts all reported units, even if processes hold parts.
func TestATallyIsNotDivided(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	m := NewMemory(func() time.Time { return now })
	for seq := range int64(3) { // a process reports that it uses its part
		a, err := m.Beat(t.Context(), &Beat{Group: "g", Client: "c", Seq: seq + 1, Silence: 1e6, Life: 3e8, Wish: 1, Need: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", a)
		now = now.Add(6 * time.Second)
	}
	r := Rule{Name: "r", Shape: limit.Rolling, Amount: 5, Ring: bucket.RingOf(bucket.Window{Amount: 5, Per: time.Minute})}
	for _, tally := range []bool{false, true} {
		r.Tally = tally
		a := Ask{Group: "g", ID: 1 + uint64(len(r.Name)), Lane: 2, Claims: []Claim{{Rule: &r, Key: "k", Cost: 1}}}
		if tally {
			a.ID++
		}
		if err := m.Take(t.Context(), &a); err != nil {
			t.Fatal(err)
		}
		if got := a.Grants[0].Left == 5; got != tally {
			t.Errorf("tally %v: %d left of 5", tally, a.Grants[0].Left)
		}
	}
}
