package recent

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestMedianIsThatOfTheLatest(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var r Durations
	if r.Median() != 0 {
		t.Errorf("none was added, and the median is %v", r.Median())
	}
	var all []time.Duration
	for range 2000 {
		d := time.Duration(1 + random.IntN(1000))
		r.Add(d)
		all = append(all, d)
		last := slices.Sorted(slices.Values(all[max(0, len(all)-size):]))
		if got, want := r.Median(), last[len(last)/2]; got != want {
			t.Fatalf("seed %d: after %d the median is %v, want %v", seed, len(all), got, want)
		}
	}
}

func TestNothingTakesNoTime(t *testing.T) {
	var r Durations
	r.Add(0)
	r.Add(-time.Second)
	if r.Median() <= 0 {
		t.Errorf("the median is %v, which says that there is none", r.Median())
	}
}

func TestManyAddAtOnce(t *testing.T) {
	var r Durations
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				r.Add(time.Second)
				if m := r.Median(); m != time.Second {
					t.Errorf("the median is %v", m)
				}
			}
		})
	}
	wg.Wait()
}
