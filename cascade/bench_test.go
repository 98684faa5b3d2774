package cascade_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
)

func bench(b *testing.B, c cascade.Config, ask func(context.Context, cascade.Turn) (int, error)) {
	k, err := cascade.New(c, cascade.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cascade.Run(ctx, k, ask); err != nil {
			b.Fatal(err)
		}
	}
}

var two = []cascade.TierConfig{{Name: "primary"}, {Name: "message", Instant: true}}

func answer(context.Context, cascade.Turn) (int, error) { return 1, nil }

var errDown = errors.New("down")

// primaryDown fails at the first tier and answers at the others.
func primaryDown(_ context.Context, t cascade.Turn) (int, error) {
	if t.Index == 0 {
		return 0, errDown
	}
	return 1, nil
}

// There is no deadline. Only the caller's context limits the call.
func BenchmarkHealthy(b *testing.B) { bench(b, cascade.Config{Tiers: two, Deadline: -1}, answer) }

// The call has a deadline, so the tier gets a context with a timer.
func BenchmarkHealthyDeadline(b *testing.B) { bench(b, cascade.Config{Tiers: two}, answer) }

func BenchmarkHealthyParallel(b *testing.B) {
	k, err := cascade.New(cascade.Config{Tiers: two, Deadline: -1}, cascade.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := cascade.Run(context.Background(), k, answer); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The primary's breaker stays open during the benchmark.
func BenchmarkOpen(b *testing.B) {
	tiers := slices.Clone(two)
	tiers[0].Health = breaker.Config{Failures: 1, Open: time.Hour, FirstOpen: time.Hour}
	bench(b, cascade.Config{Tiers: tiers}, primaryDown)
}
