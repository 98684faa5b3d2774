package bucket

import (
	"math/rand/v2"
	"testing"
	"time"
)

// After predicts exactly when a call proceeds behind others, unit by unit: also in debt, with an amount below the
// usage, and after a pause.
func TestPropertyAfterIsExact(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := Window{Amount: 1 + r.Int64N(12), Per: time.Duration(1+r.IntN(20)) * time.Second}
		g, now := NewLog(w), time.Duration(0)
		for range r.IntN(20) {
			now += time.Duration(r.Int64N(int64(w.Per) / 4))
			switch r.IntN(6) {
			case 0:
				g.Owe(now, 1+r.Int64N(3*w.Amount))
			case 1:
				w.Amount = 1 + r.Int64N(12)
				g.Set(now, w)
			default:
				g.Take(now, 0, 1+r.Int64N(w.Amount))
			}
		}
		paused := now + time.Duration(r.IntN(3))*w.Per/2
		ahead := r.Int64N(40)
		got := g.After(now, paused, ahead, 1)
		at := now
		for range ahead + 1 {
			at += g.Ask(at, paused, 1)
			if _, _, ok := g.Take(at, paused, 1); !ok {
				t.Fatalf("seed %d: it cannot go when Ask says", seed)
			}
		}
		if at-now != got {
			t.Fatalf("seed %d: behind %d After says %v, and it goes after %v", seed, ahead, got, at-now)
		}
	}
}
