package limit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A change that the axis of a bucket cannot hold reaches those who wait at once: they go at the new rate, in
// their order, and together with those who come later never above it. Who leaves leaves its units to others.
func TestWhoWaitsFeelsAnyRate(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 64))
		slow := bucket.Rate{Amount: 1 + random.Int64N(10), Per: time.Minute, Burst: 1 + random.Int64N(3)}
		fast := bucket.Rate{Amount: slow.Amount * (65 + random.Int64N(10_000)), Per: time.Minute, Burst: 3 + random.Int64N(50)}
		r := mustRegistry(t, limitOf(slow))
		var waiting []*Permit
		ask := func(now time.Duration) (ok bool) {
			p := new(Permit)
			p.Add(Charge{Registry: r, Cost: 1 + random.Int64N(min(3, slow.Burst))})
			v := p.Take(now, time.Hour)
			if v.OK && v.Wait > 0 {
				waiting = append(waiting, p)
			}
			return v.OK && v.Wait == 0
		}
		for range 5 + random.IntN(30) {
			ask(time.Duration(random.Int64N(int64(time.Second))))
		}
		now := time.Duration(1+random.IntN(20)) * time.Second
		waiting = slices.DeleteFunc(waiting, func(p *Permit) bool { return p.Take(now, time.Hour).Wait == 0 })
		if err := r.Set(now, limitOf(fast)); err != nil {
			t.Fatal(err)
		}
		set, owed := now, int64(0)
		for _, p := range waiting {
			owed += p.Charge(0).Cost
		}
		left, last := random.IntN(3), now
		var went []time.Duration // one for each unit
		step := max(time.Duration(int64(fast.Per)/fast.Amount/3), time.Microsecond)
		for ; len(waiting) > 0; now += step {
			if took := time.Duration(owed) * fast.Per / time.Duration(fast.Amount); now-set > took+2*step+time.Microsecond {
				t.Fatalf("seed %d: %v to %v: %d still wait after %v, which %d units take not longer than %v", seed, slow, fast, len(waiting), now-set, owed, took)
			}
			if left > 0 && random.IntN(4) == 0 {
				i := random.IntN(len(waiting))
				waiting[i].Drop(now)
				waiting = append(waiting[:i], waiting[i+1:]...)
				left--
				continue
			}
			waiting = slices.DeleteFunc(waiting, func(p *Permit) bool {
				if v := p.Take(now, time.Hour); !v.OK || v.Wait > 0 {
					return false
				}
				for range p.Charge(0).Cost {
					went = append(went, now)
				}
				last = now
				return true
			})
		}
		late := new(Permit)
		late.Add(Charge{Registry: r, Cost: fast.Burst})
		if v := late.Take(last, time.Hour); !v.OK || v.Wait > time.Duration(fast.Burst)*fast.Per/time.Duration(fast.Amount)+step {
			t.Errorf("seed %d: a burst after all went is there in %+v", seed, v)
		}
		every := fast.Per / time.Duration(fast.Amount)
		for i := range went { // all that was there at the change is a part of the first turn
			if most := int64((went[i]-set)/every) + 1; int64(i+1) > most+min(3, slow.Burst) {
				t.Fatalf("seed %d: %v to %v: %d units within %v", seed, slow, fast, i+1, went[i]-set)
			}
		}
	}
}
