package breakers_test

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/breakers"
	"github.com/seed1158cd35/weir/outcome"
)

// Two processes that share a store see one failure each. Together these are too many. A program calls Run instead
// of Sync.
func Example() {
	ctx, store := context.Background(), fleet.NewMemory(nil)
	process := func(name string) (*breaker.Breaker, *breakers.Breakers) {
		b := breaker.New("", breaker.Config{Failures: 2}, func(c breaker.Change) {
			fmt.Printf("%s: %v, %v\n", name, c.To, c.Why)
		})
		return b, breakers.New(breakers.Config{Store: store, Group: "billing"}, b)
	}
	call := func(b *breaker.Breaker) {
		now := clock.System.Now()
		if permit, _, ok := b.Admit(now); ok {
			b.Report(now, permit, outcome.Outcome{Class: outcome.Failed})
		}
	}
	a, as := process("a")
	b, bs := process("b")

	call(a)
	as.Sync(ctx) // writes one failure
	call(b)
	bs.Sync(ctx) // writes the second failure, which reaches the maximum

	next := as.Sync(ctx) // a has no changes, and reads the store at the scheduled time
	_ = clock.System.Sleep(ctx, next-clock.System.Now())
	as.Sync(ctx)
	// Output:
	// b: open, fleet tripped
	// a: open, fleet tripped
}

func ExampleBreakers_Run() {
	g := breaker.NewGroup(0, breaker.Config{}, nil)
	s := breakers.New(breakers.Config{Store: fleet.NewMemory(nil), Group: "billing", Scope: "tenant"}, g)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- s.Run(ctx) }()
	// ... calls ask g.For(now, tenant) ...
	stop()
	fmt.Println(<-over)
	// Output: context canceled
}

func ExampleBreakers_Stats() {
	b := breaker.New("", breaker.Config{}, nil)
	s := breakers.New(breakers.Config{Store: fleet.NewMemory(nil), Group: "billing"}, b)
	s.Sync(context.Background())
	fmt.Printf("%+v\n", s.Stats())
	// Output: {Loads:1 Takes:0 Swaps:0 Conflicts:0 Failed:0}
}
