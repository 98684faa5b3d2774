package limit

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// Peek at a key leaves nothing behind, and returns what a call with that key would find.
func TestPeekMakesNoLimiter(t *testing.T) {
	for _, l := range []Limit{
		{Name: "bucket", Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}},
		{Name: "rolling", Scope: "user", Shape: Rolling, Rate: bucket.Rate{Amount: 10, Per: time.Minute}},
	} {
		r := mustRegistry(t, l)
		if v, ok := r.Peek(0, "new"); !ok || v.Left != 10 || r.Len() != 0 {
			t.Errorf("%s: a key that is new: %+v %v, %d keys; want 10 left and none", l.Name, v, ok, r.Len())
		}
		r.Get(0, "met").Try(0, 4)
		if v, ok := r.Peek(0, "met"); !ok || v != r.Get(0, "met").Look(0) || v.Left != 6 {
			t.Errorf("%s: a key that is met: %+v %v, want 6 left", l.Name, v, ok)
		}
		if v, ok := r.Peek(0, "new"); !ok || v.Left != 10 || r.Len() != 1 {
			t.Errorf("%s: then a key that is new: %+v %v, %d keys", l.Name, v, ok, r.Len())
		}
	}
	empty, err := NewEmpty(0, Limit{Name: "empty", Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := empty.Peek(0, "new"); !ok || v.Left != 0 {
		t.Errorf("a key that would begin empty: %+v %v", v, ok)
	}
}
