package fleet

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// The time of a decision with a lease, compared with a limit of a single process.
func BenchmarkLeased(b *testing.B) {
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1 << 33, Per: time.Second}}
	now := clock.System.Now()
	local, err := limit.NewRegistry(now, l)
	if err != nil {
		b.Fatal(err)
	}
	f := New(NewMemory(nil), Options{})
	shared, err := limit.NewShared(now, l, f.Group("up"))
	if err != nil {
		b.Fatal(err)
	}
	leaseOf(shared.Get(now, "")).put(now, 1<<60, noExpiry, Mark{At: 1, Step: 1})
	for name, r := range map[string]*limit.Registry{"local": local, "leased": shared} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var p limit.Charges
			for b.Loop() {
				now := clock.System.Now()
				p.Reset()
				p.Add(limit.Charge{Registry: r, Cost: 1})
				if v := p.Take(now); !v.OK {
					b.Fatal(v)
				}
				p.Settle(now, nil)
			}
		})
	}
}
