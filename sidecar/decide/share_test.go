package decide

import (
	"testing"
	"time"
)

// A key counts for at least ten and at most twenty minutes, whatever is requested meanwhile.
func TestKeysCountForAWhile(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, while - 1: false, while: false, 2 * while: true, 3 * while: true} {
		var s share
		begin := time.Now()
		if !s.names(begin, []uint64{1, 2, 3}, 3) {
			t.Fatal("three keys are too many")
		}
		if got := s.names(begin.Add(after), []uint64{4}, 3); got != want {
			t.Errorf("a fourth key after %v: %v, want %v", after, got, want)
		}
	}
}
