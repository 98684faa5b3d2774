package callid

import (
	"testing"
	"time"
)

// An ID contains its second, and IDs are unique.
func TestIDsHaveTheirSecond(t *testing.T) {
	known := make(map[string]bool)
	for _, at := range []int64{1577836800, 1795478400, 2176782335, 2176782336, 4102444800} {
		for range 1000 {
			now := time.Unix(at, 999_999_999)
			id := New(now)
			if got, ok := Second(id); !ok || !got.Equal(time.Unix(at, 0)) || known[id] {
				t.Fatalf("%s of %d: %v, %v, known: %v", id, at, got, ok, known[id])
			}
			known[id] = true
		}
	}
}

func TestOtherIDsSayNone(t *testing.T) {
	for _, id := range []string{"", "1z4qeq0q5rsr7", "6ba7b810-9dad-11", "0123456789ABCDE", "+12345678901234", New(time.Now()) + "00"} {
		if at, ok := Second(id); ok {
			t.Errorf("%q: %v", id, at)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	now := time.Now()
	for b.Loop() {
		New(now)
	}
}
