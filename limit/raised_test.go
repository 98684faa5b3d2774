package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// Waiting calls notice immediately when a rate changes by more than the line of a bucket can hold. They proceed at
// the new rate, in their order, and never exceed it together with later calls. A call that leaves takes nothing away.
func TestWhoWaitsFeelsAnyRate(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 64))
		slow := bucket.Rate{Amount: 1 + random.Int64N(10), Per: time.Minute, Burst: 1 + random.Int64N(3)}
		fast := bucket.Rate{Amount: slow.Amount * (65 + random.Int64N(10_000)), Per: time.Minute, Burst: 3 + random.Int64N(50)}
		r := mustRegistry(t, limitOf(slow))
		var waiting []*Charges // in order; the first one asks
		take := func(now time.Duration, p *Charges) (wait time.Duration) { return p.Take(now).Wait }
		for range 5 + random.IntN(30) {
			p := new(Charges)
			p.Add(Charge{Registry: r, Cost: 1 + random.Int64N(min(3, slow.Burst))})
			if len(waiting) > 0 || take(time.Duration(random.Int64N(int64(time.Second))), p) > 0 {
				waiting = append(waiting, p)
			}
		}
		set := time.Duration(1+random.IntN(20)) * time.Second
		for len(waiting) > 0 && take(set, waiting[0]) == 0 {
			waiting = waiting[1:]
		}
		if err := r.Set(set, limitOf(fast)); err != nil {
			t.Fatal(err)
		}
		every := fast.Per / time.Duration(fast.Amount)
		left, now, went, gone := random.IntN(3), set, int64(0), int64(0)
		for len(waiting) > 0 {
			if left > 0 && random.IntN(4) == 0 {
				i := random.IntN(len(waiting))
				gone += waiting[i].Charge(0).Cost // the queue may have waited for it
				waiting = append(waiting[:i], waiting[i+1:]...)
				left--
				continue
			}
			if wait := take(now, waiting[0]); wait > 0 {
				now += wait
				continue
			}
			went += waiting[0].Charge(0).Cost
			waiting = waiting[1:]
			// The new bucket starts empty, and all units that come are used.
			if took, want := now-set, time.Duration(went)*every; took < want-time.Microsecond || took > want+want/1e6+time.Duration(gone)*every+time.Duration(went)+time.Microsecond {
				t.Fatalf("seed %d: %v to %v: %d units went within %v, want %v", seed, slow, fast, went, took, want)
			}
		}
		late := new(Charges)
		late.Add(Charge{Registry: r, Cost: fast.Burst})
		if wait := take(now, late); wait > time.Duration(fast.Burst)*(every+1) {
			t.Errorf("seed %d: a burst after all went is there in %v", seed, wait)
		}
	}
}
