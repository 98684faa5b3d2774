package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestARingCountsForAsLongAsTheWindow(t *testing.T) {
	cases(t, 10_000, func(rng *rand.Rand) error {
		w := Window{Amount: 1, Per: time.Duration(upTo(rng, int64(366*24*time.Hour)))}
		r := RingOf(w)
		at := rng.Int64N(1 << 52)
		leaves := r.Leaves(r.Slot(at), r.Grain)
		counted := time.Duration(leaves-at) * time.Microsecond
		slot := time.Duration(r.Grain) * time.Microsecond
		if counted < w.Per {
			return fmt.Errorf("%v: a unit was counted for %v only", w.Per, counted)
		}
		if most := w.Per + w.Per/Slots + (Slots+2)*time.Microsecond + slot; counted > most {
			return fmt.Errorf("%v: a unit was counted for %v, want %v at most", w.Per, counted, most)
		}
		return nil
	})
}
