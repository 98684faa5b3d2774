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
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A lateCase are calls that reserve k times what they use, and report after hold. A full bucket drains in fill.
type lateCase struct {
	k          float64
	fill, hold time.Duration
}

// allowed is the share of the rate that the limit allows such calls to use.
func (l lateCase) allowed() float64 { return min(1, (1+l.fill.Seconds()/l.hold.Seconds())/l.k) }

// run is the share of the rate that two stores let them use, of calls that want more than there is, and the most bytes of
// the item.
func (l lateCase) run(t *testing.T) (share float64, size int) {
	const rate = 1_000_000
	perBurst := int64(24) // calls; what is lost of a burst is one of them
	if l.hold <= l.fill {
		perBurst = 48
	}
	hand := storetest.NewHand()
	f := newFake(hand.Now)
	stores := [2]*Store{New(clientOf(f), "weir", Options{exact: hand.Now}), New(clientOf(f), "weir", Options{exact: hand.Now})}
	r := &fleet.Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: rate, Per: time.Second, Burst: int64(rate * l.fill.Seconds())})}
	cost := r.Most() / perBurst
	uses := int64(float64(cost) / l.k)
	type call struct {
		at   time.Time
		mark fleet.Mark
	}
	var open []call
	var settle []fleet.Settlement
	warm := 2*l.hold + 2*l.fill
	length := (2 + 2*l.fill/l.hold) * l.hold
	begin, used, id := hand.Now(), int64(0), uint64(0)
	for hand.Now().Sub(begin) < warm+length {
		hand.Advance(l.fill / time.Duration(perBurst))
		for len(open) > 0 && hand.Now().Sub(open[0].at) >= l.hold {
			settle = append(settle, fleet.Settlement{Rule: r, Key: "k", Back: cost - uses, Mark: open[0].mark})
			open = open[1:]
		}
		for i, s := range stores {
			id++
			a := &fleet.Ask{Group: "g", ID: id, Lane: uint64(i + 1), Copies: perBurst, Claims: []fleet.Claim{{Rule: r, Key: "k", Cost: cost}}, Settle: settle}
			if settle = nil; s.Take(context.Background(), a) != nil {
				t.Fatal("the store fails")
			}
			for range a.Granted {
				open = append(open, call{hand.Now(), a.Grants[0].Mark})
				if hand.Now().Sub(begin) >= warm {
					used += uses
				}
			}
		}
		for _, it := range f.items {
			size = max(size, sizeOf(it))
		}
	}
	return float64(used) / length.Seconds() / rate, size
}

// sizeOf is how many bytes an item takes, more or less.
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

// Units that calls reserved and did not use are used by others, however long the calls take.
func TestTableLetsLongCallsUseWhatABucketAllows(t *testing.T) {
	cases := []lateCase{
		{2, time.Second, time.Millisecond}, {3, time.Second, time.Second}, {2, time.Second, 3 * time.Second}, {1.2, time.Second, 10 * time.Second},
		{3, 15 * time.Second, 10 * time.Second},
	}
	if campaign.Long() {
		for _, k := range []float64{1.2, 2, 3} {
			for _, fill := range []time.Duration{time.Second, 15 * time.Second} {
				for _, hold := range []time.Duration{300, 10_000, 120_000} {
					cases = append(cases, lateCase{k, fill, hold * time.Millisecond})
				}
			}
		}
	}
	for _, l := range cases {
		t.Run(fmt.Sprintf("k %v, burst of %v, calls of %v", l.k, l.fill, l.hold), func(t *testing.T) {
			t.Parallel()
			used, size := l.run(t)
			want := l.allowed()
			t.Logf("%.1f%% of the rate, %.1f%% of what is allowed, %d bytes", 100*used, 100*used/want, size)
			if used < 0.96*want || used > 1.03*want { // a slot of the history and a call are lost of the burst
				t.Errorf("%.1f%% of the rate used, want %.1f%%", 100*used, 100*want)
			}
		})
	}
}

// A lateCall was granted at an instant, and is open until it reports.
type lateCall struct {
	at   time.Time
	cost int64 // what counts of it: the reservation, and once it has reported what it used
	mark fleet.Mark
	open bool
}

// Whenever units come back, in whatever order and to whatever process, what open calls have reserved and others have used is
// within the limit in every window, also while a process of an earlier version takes units beside.
func TestTableReturnsNeverExceedTheLimit(t *testing.T) {
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
				hand.Advance(1 + time.Duration(rng.Int64N(int64(fill/20))))
				if rng.IntN(150) == 0 {
					hand.Advance(time.Duration(rng.Int64N(int64(2 * fill))))
				}
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
					if g.Left > 4 && rng.IntN(25) == 0 { // an earlier version takes some
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
