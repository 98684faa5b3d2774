package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// A field stores for every single position who holds it. A Returned must never promise more.
type field struct {
	rng      *rand.Rand
	returned Returned
	at       int64
	held     []Turn         // granted
	back     map[int64]bool // returned positions that are free
	depth    int64
}

// claim takes the positions of a turn out of the free ones, and returns false if there are not enough. For a turn
// with gaps they are ambiguous. It takes the highest, which is worst for later turns. Positions below low are
// useless.
func (f *field) claim(t Turn, low int64) bool {
	left := t.Cost
	for p := t.Place; p > max(t.Low, low) && left > 0; p-- {
		if f.back[p] {
			delete(f.back, p)
			left--
		}
	}
	return left == 0
}

func (f *field) free(low, high int64) (n int64) {
	for p := range f.back {
		if p > low && p <= high {
			n++
		}
	}
	return n
}

// Uses only whole turns and no union: then every position is known, and the list can be compared position by
// position.
func TestReturnedGivesOnlyWhatCameBack(t *testing.T) {
	cases(t, campaign.Of(300, 3000), func(rng *rand.Rand) error {
		f := &field{rng: rng, back: map[int64]bool{}, depth: 1 + rng.Int64N(60)}
		for i := int64(-100); i < 400; {
			n := 1 + rng.Int64N(12)
			f.held = append(f.held, Turn{i + n, i, n})
			i += n
		}
		for step := range 100 {
			f.at += rng.Int64N(4)
			if err := f.step(); err != nil {
				return fmt.Errorf("step %d, at %d, depth %d: %w: %v", step, f.at, f.depth, err, f.returned)
			}
		}
		return nil
	})
}

func (f *field) step() error {
	low := f.at - f.depth
	want := 1 + f.rng.Int64N(20)
	switch f.rng.IntN(4) {
	case 0, 1:
		f.giveBack()
	case 2, 3:
		left := f.returned.Left(f.at, low)
		if there := f.free(low, f.at); left > there {
			return fmt.Errorf("promises %d, of which %d are free", left, there)
		}
		rest, got := f.returned.Take(f.at, low, want)
		if got.Cost != min(want, left) || got.Cost > 0 && (got.Place > f.at || got.Low < low) || !f.claim(got, low) {
			return fmt.Errorf("gives %+v when asked for %d of %d", got, want, left)
		}
		f.returned = rest
	}
	return f.sane()
}

func (f *field) giveBack() {
	if len(f.held) == 0 {
		return
	}
	i := f.rng.IntN(len(f.held))
	t := f.held[i]
	f.held = append(f.held[:i], f.held[i+1:]...)
	f.returned = f.returned.Add(t)
	for p := t.Low + 1; p <= t.Place; p++ {
		f.back[p] = true
	}
}

func (f *field) sane() error {
	if len(f.returned) > kept {
		return fmt.Errorf("keeps %d entries", len(f.returned))
	}
	for i, t := range f.returned {
		if t.Cost <= 0 || t.Cost > t.Place-t.Low {
			return fmt.Errorf("entry %+v cannot be", t)
		}
		if i > 0 && f.returned[i-1].Place > t.Place {
			return fmt.Errorf("entry %d out of order", i)
		}
		if f.free(t.Low, t.Place) < t.Cost {
			return fmt.Errorf("entry %+v promises more than is free", t)
		}
	}
	return nil
}

func TestWhatComesBackInAnyOrderIsOneStretchAgain(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		var s Returned
		const turns = 300
		for _, i := range rng.Perm(turns) {
			s = s.Add(Turn{int64(i+1) * 10, int64(i) * 10, 10})
		}
		if len(s) != 1 || s[0] != (Turn{turns * 10, 0, turns * 10}) {
			return fmt.Errorf("got %v", s)
		}
		return nil
	})
}

func TestASpareIsNotChangedByWhatIsMadeOfIt(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		var s Returned
		for range rng.IntN(100) {
			low := rng.Int64N(100) * 20
			s = s.Add(Turn{low + 10, low, 10})
		}
		before := fmt.Sprint(s)
		s.Add(Turn{95, 90, 5})
		s.Take(500, 100, 45)
		s.Redeem(500, 45)
		if len(s) > 0 {
			s.Touching(s[len(s)/2].Place)
		}
		if after := fmt.Sprint(s); after != before {
			return fmt.Errorf("%v became %v", before, after)
		}
		return nil
	})
}
