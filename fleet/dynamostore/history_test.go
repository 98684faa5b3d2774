package dynamostore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sizeOf returns the approximate size of an item in bytes.
func sizeOf(it map[string]av) (n int) {
	for name, v := range it {
		n += len(name)
		if text, ok := v["S"].(string); ok {
			n += len(text)
		}
		if text, ok := v["N"].(string); ok {
			n += len(text)/2 + 1
		}
	}
	return n
}

// Other calls can use the units that long calls reserved and did not use, regardless of how long the calls take.
func TestTableLetsLongCallsUseWhatABucketAllows(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	storetest.TestLongCalls(t, func(t *testing.T) ([]fleet.Store, func(d time.Duration)) {
		hand := storetest.NewHand()
		f := newFake(hand.Now)
		t.Cleanup(func() {
			for _, it := range f.items {
				t.Logf("an item of %d bytes", sizeOf(it))
			}
		})
		return []fleet.Store{New(clientOf(f), "weir", Options{exact: hand.Now}), New(clientOf(f), "weir", Options{exact: hand.Now})}, hand.Advance
	})
}

// A lateCall is a call that was granted at an instant. It is open until it reports.
type lateCall struct {
	at   time.Time
	cost int64 // its reservation, or its usage after it has reported
	mark fleet.Mark
	open bool
}

// Units return at any time, in any order and through any process, while a process of an earlier version also takes
// units. In every window, the reservations of open calls plus the usage of reported calls are within the limit.
func TestTableReturnsNeverExceedTheLimit(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for seed := range uint64(campaign.Histories(12, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			hand := storetest.NewHand()
			f := newFake(hand.Now)
			var stores [3]*Store
			for i := range stores {
				stores[i] = New(clientOf(f), "weir", Options{exact: hand.Now})
			}
			r := &fleet.Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 100 + rng.Int64N(3000)})}
			m := &r.Meter
			fill := time.Duration(m.Cap/m.Drain) * time.Microsecond
			hold := fill/10 + time.Duration(rng.Int64N(int64(4*fill)))
			var calls []*lateCall
			id, begun := uint64(0), false
			for step := range 400 {
				most := fill / 20
				if rng.IntN(150) == 0 {
					most = 2 * fill
				}
				hand.Advance((1 + time.Duration(rng.Int64N(most.Microseconds()))) * time.Microsecond) // the resolution of limits is 1 us
				now := hand.Now()
				var settle []fleet.Settlement
				many := 8
				if rng.IntN(6) == 0 {
					many = 100
				}
				for _, k := range calls {
					if k.open && len(settle) < many && now.Sub(k.at) > hold/2+time.Duration(rng.Int64N(int64(hold))) {
						back := rng.Int64N(k.cost + 1)
						settle = append(settle, fleet.Settlement{Rule: r, Key: "k", Back: back, Mark: k.mark})
						k.cost, k.open = k.cost-back, false
					}
				}
				id++
				cost := 1 + rng.Int64N(1+r.Most()/(2+rng.Int64N(30)))
				a := &fleet.Ask{Group: "g", ID: id, Lane: rng.Uint64N(8) + 1, Copies: rng.Int64N(30), Settle: settle, Claims: []fleet.Claim{{Rule: r, Key: "k", Cost: cost, Extra: rng.Int64N(3)}}}
				s := stores[rng.IntN(3)]
				if err := s.Take(context.Background(), a); err != nil {
					t.Fatal(err)
				}
				g := a.Grants[0]
				if n := a.Granted*cost + g.Extra; n > 0 {
					calls = append(calls, &lateCall{now, n, g.Mark, true})
				}
				for name, it := range f.items {
					if name != "t/1:g/1:k" {
						continue
					}
					_, has := it["x"+suffix("l")]
					begun = begun || has
					if g.Left > 4 && rng.IntN(25) == 0 { // a process of an earlier version takes units
						n := 1 + rng.Int64N(g.Left/2)
						at := "t" + suffix("l")
						v := number(it[at])
						it[at] = av{"N": v.Add(v, number(av{"N": fmt.Sprint(n * m.Unit)})).String()}
						calls = append(calls, &lateCall{now, n, fleet.Mark{}, false})
					}
				}
				var sum int64
				for i := len(calls) - 1; i >= 0; i-- {
					sum += calls[i].cost * m.Unit
					if over := sum - m.Cap - m.Drains(now.Sub(calls[i].at).Microseconds()); over > 0 {
						t.Fatalf("step %d: over by %d units in %v", step, (over+m.Unit-1)/m.Unit, now.Sub(calls[i].at))
					}
				}
			}
			t.Logf("burst %d, calls of %v, history %v", r.Most(), hold, begun)
		})
	}
}
