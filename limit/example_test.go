package limit_test

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var twoASecond = limit.Limit{Name: "put", Rate: bucket.Rate{Amount: 2, Per: time.Second, Burst: 2}}

func ExampleLimiter_Try() {
	m, _ := limit.New(0, twoASecond)
	for range 3 {
		fmt.Println(m.Try(0, 1))
	}
	fmt.Println(m.Try(500*time.Millisecond, 1))
	// Output:
	// true
	// true
	// false
	// true
}

func ExampleLimiter_Take() {
	m, _ := limit.New(0, twoASecond)
	turn, wait, ok := m.Take(0, 2)
	fmt.Println(wait, ok)
	_, wait, ok = m.Take(0, 1)
	fmt.Println(wait, ok)
	m.Back(0, turn, bucket.All)
	fmt.Println(m.Ask(0, 2))
	// Output:
	// 0s true
	// 500ms false
	// 0s
}

func ExampleLimiter_Pause() {
	m, _ := limit.New(0, twoASecond)
	m.Pause(0, 30*time.Second) // the upstream asked for a wait of 30 s
	fmt.Println(m.Try(29*time.Second, 1), m.Ask(10*time.Second, 1), m.Try(30*time.Second, 1))
	// Output: false 20s true
}

func ExampleLimiter_Owe() {
	m, _ := limit.New(0, twoASecond)
	m.Try(0, 2)
	m.Owe(0, 3) // the actual usage was 5
	fmt.Println(m.Ask(0, 1))
	// Output: 2s
}

func ExampleLimiter_Look() {
	m, _ := limit.New(0, twoASecond)
	m.Try(0, 1)
	v := m.Look(0)
	fmt.Println(v.Left, v.Full, v.PerSecond, v.Reset)
	// Output: 1 2 2 500ms
}

func ExampleRegistry() {
	l := twoASecond
	l.Scope = "tenant"
	r, _ := limit.NewRegistry(0, l)
	fmt.Println(r.Get(0, "a").Try(0, 2), r.Get(0, "a").Try(0, 1), r.Get(0, "b").Try(0, 1))
	fmt.Println(r.Set(0, limit.Limit{Name: "put", Rate: bucket.Rate{Amount: 4, Per: time.Second, Burst: 4}}))
	fmt.Println(r.Get(time.Second, "a").Look(time.Second).Left)
	// Output:
	// true false true
	// <nil>
	// 4
}

func ExampleCharges() {
	requests, _ := limit.NewRegistry(0, twoASecond)
	tokens, _ := limit.NewRegistry(0, limit.Limit{Name: "tpm", Unit: "tokens", Rate: bucket.Rate{Amount: 6000, Per: time.Minute, Burst: 1000}})
	var p limit.Charges
	p.Add(limit.Charge{Registry: requests, Cost: 1})
	p.Add(limit.Charge{Registry: tokens, Cost: 800})
	fmt.Println(p.Take(0).OK)
	p.Settle(0, map[string]int64{"tokens": 300})
	fmt.Println(requests.Get(0, "").Look(0).Left, tokens.Get(0, "").Look(0).Left)

	p = limit.Charges{}
	p.Add(limit.Charge{Registry: requests, Cost: 1})
	p.Add(limit.Charge{Registry: tokens, Cost: 800})
	v := p.Take(0)
	fmt.Println(v.OK, v.Wait, v.Why) // the second charge is refused, with a wait of a second
	fmt.Println(requests.Get(0, "").Look(0).Left)
	// Output:
	// true
	// 1 700
	// false 1s 1
	// 1
}

func ExampleLimit_Validate() {
	fmt.Println(limit.Limit{Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: time.Minute, Burst: 2}}.Validate())
	// Output:
	// name: must not be empty; refusals and metrics show it
	// burst 2: a rolling limit has none; its amount may be used all at one time
}

func ExampleLimit_Windows() {
	l := limit.Limit{Name: "rpd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 25}, Every: bucket.Day, Zone: "America/Los_Angeles"}
	w := l.Windows(time.Date(2026, 11, 1, 20, 0, 0, 0, time.UTC))
	fmt.Println(l, l.IsQuota(), l.Validate())
	fmt.Println(w.Start, w.End.Sub(w.Start), w.Next.Sub(w.End))
	// Output:
	// 25 a day (America/Los_Angeles) true <nil>
	// 2026-11-01 00:00:00 -0700 PDT 25h0m0s 24h0m0s
}

// midnight is a clock that shows New Year's Eve.
type midnight struct{ clock.Clock }

func (midnight) Wall(at time.Duration) time.Time {
	return time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC).Add(at)
}

func ExampleWithWall() {
	daily := limit.Limit{Name: "rpd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 2}, Every: bucket.Day}
	r, _ := limit.NewRegistry(0, daily, limit.WithWall(midnight{clock.System}))
	m := r.Get(0, "")
	fmt.Println(m.Try(0, 2), m.Ask(0, 1), m.Look(0).ResetAt.Format(time.DateTime))
	fmt.Println(m.Try(time.Hour, 1), m.Look(time.Hour).Left)
	// Output:
	// true 1h0m0s 2026-01-01 00:00:00
	// true 1
}
