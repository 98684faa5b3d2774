package limit

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A decision that a lease serves, beside one of a limit of this process alone.
func BenchmarkLeased(b *testing.B) {
	l := Limit{Name: "l", Rate: bucket.Rate{Amount: 1 << 33, Per: time.Second}}
	now := clock.System.Now()
	local, err := NewRegistry(now, l)
	if err != nil {
		b.Fatal(err)
	}
	f := NewFleet(NewMemory(nil), FleetOptions{})
	shared, err := NewShared(now, l, f.Group("up"))
	if err != nil {
		b.Fatal(err)
	}
	poolOf(shared.Get(now, "")).put(now, 1<<60, noExpiry, Mark{At: 1, Step: 1})
	for name, r := range map[string]*Registry{"local": local, "leased": shared} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var p Permit
			for b.Loop() {
				now := clock.System.Now()
				p.Reset()
				p.Add(Charge{Registry: r, Cost: 1})
				if v := p.Take(now, 0); !v.OK {
					b.Fatal(v)
				}
				p.Settle(now, nil)
			}
		})
	}
}
