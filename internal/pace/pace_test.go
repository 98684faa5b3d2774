package pace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// wait simulates a body that arrives in pieces at intervals. It returns the time at which the pace gives up, or 0.
func wait(p Pace, piece int, every time.Duration, pieces int) (at time.Duration) {
	for range pieces {
		if p.Bounds() && every > p.Left() {
			return at + p.Left()
		}
		at += every
		p.Came(piece, every)
	}
	return 0
}

func TestABodyThatIsTooSlowIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pace   Pace
		piece  int
		every  time.Duration
		pieces int
		want   time.Duration
	}{
		{"two bytes a second", New(100, 30*time.Second, time.Minute), 2, time.Second, 100, 30*time.Second + 600*time.Millisecond},
		{"nothing", New(100, 30*time.Second, time.Minute), 0, time.Hour, 1, 30 * time.Second},
		{"the rate", New(100, 30*time.Second, time.Minute), 100, time.Second, 100_000, 0},
		{"the rate, in few pieces", New(100, 30*time.Second, time.Minute), 3000, 30 * time.Second, 1000, 0},
		{"a little less", New(100, 30*time.Second, time.Minute), 98, time.Second, 100_000, 1451 * time.Second},
		{"no bound", New(0, 30*time.Second, time.Minute), 0, time.Hour, 100, 0},
	} {
		got := wait(tt.pace, tt.piece, tt.every, tt.pieces)
		if (got == 0) != (tt.want == 0) || (got-tt.want).Abs() > 2*time.Second {
			t.Errorf("%s: given up after %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A body that reaches the rate in every period never times out. A body that is waited for longer than its bytes and the initial
// time allow always does.
func TestBytesEarnTime(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		rate, over := 1+random.Int64N(1000), time.Duration(1+random.IntN(60))*time.Second
		p := New(rate, over, over)
		var waited time.Duration
		bytes := 0
		for range 50 {
			d := time.Duration(random.Int64N(int64(over)))
			n := random.IntN(int(2*float64(rate)*d.Seconds()) + 1)
			if d > p.Left() {
				break
			}
			p.Came(n, d)
			waited, bytes = waited+d, bytes+n
			if earned := over + time.Duration(float64(bytes)/float64(rate)*float64(time.Second)); waited > earned+time.Millisecond {
				t.Fatalf("seed %d: %v were waited for %d bytes at %d a second over %v", seed, waited, bytes, rate, over)
			}
		}
	}
}
