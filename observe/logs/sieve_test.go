package logs

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever comes when: of each kind at most so many lines pass in any second that
// begins with one, and what passed and what was told to be suppressed is all.
func TestSieveLosesNoCount(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		s := sieve{most: 1 + r.IntN(4)}
		now := time.Unix(0, 0)
		var came, passed, told [3]int
		for range r.IntN(200) {
			now = now.Add(time.Duration(r.IntN(400)) * time.Millisecond)
			i := r.IntN(3)
			n, ok := s.passAt(now, kind{message: "abc"[i : i+1]})
			came[i]++
			if ok {
				passed[i]++
				told[i] += n
			} else if n != 0 {
				t.Fatalf("seed %d: a suppressed line tells of %d", seed, n)
			}
		}
		now = now.Add(time.Second)
		for i := range came {
			if n, ok := s.passAt(now, kind{message: "abc"[i : i+1]}); !ok || passed[i]+told[i]+n != came[i] {
				t.Fatalf("seed %d: %d came, %d passed, %d were told, and %d at last", seed, came[i], passed[i], told[i], n)
			}
		}
	}
}

func TestZeroSieveLetsAllThrough(t *testing.T) {
	var s sieve
	for range 1000 {
		if n, ok := s.pass(kind{}); !ok || n != 0 {
			t.Fatalf("suppressed %d, passed %v", n, ok)
		}
	}
}

func TestSieveHoldsItsBound(t *testing.T) {
	s := sieve{most: 3}
	start, passed := time.Unix(0, 0), 0
	for ms := range 10_000 {
		if _, ok := s.passAt(start.Add(time.Duration(ms)*time.Millisecond), kind{}); ok {
			passed++
		}
	}
	if passed != 30 {
		t.Errorf("%d lines in 10 s, want 30", passed)
	}
}
