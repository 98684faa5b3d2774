package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sim"
)

// storm plays the example of Bronson et al., "Metastable Failures in Distributed Systems" (HotOS 2021). A database does
// 300 queries per second and gets 280. Each has a timeout of a second and is repeated at most once. The network stalls for ten
// seconds. storm returns the attempts per second that the database gets a minute later, and the share of answered queries.
func storm(query func(w *sim.World, database *sim.Upstream) func() error) (sent, answered float64) {
	w := sim.New(1)
	defer w.Close()
	database := w.Upstream(sim.Behaviour{
		Work: time.Second / 300, Latency: 10 * time.Millisecond,
		Outages: []sim.Outage{{From: 30 * time.Second, Until: 40 * time.Second, Stall: true}},
	})
	do := query(w, database)
	queries, good := 0.0, 0.0
	w.Go(func() {
		for w.Now() < 120*time.Second {
			queries++
			w.Go(func() {
				if do() == nil {
					good++
				}
			})
			_ = w.Clock().Sleep(context.Background(), time.Duration(w.Rand().ExpFloat64()/280*float64(time.Second)))
		}
	})
	for _, until := range []time.Duration{100 * time.Second, 120 * time.Second} {
		sent, queries, good = float64(database.Counts().Calls), 0, 0
		if err := w.RunUntil(until); err != nil {
			panic(err)
		}
	}
	return (float64(database.Counts().Calls) - sent) / 20, good / queries
}

// The retry storm persists after its trigger has ended: the database gets 2 x 280 = 560 queries per second, as the paper
// computes, and answers only clients that have left. With a bound on queries in flight, which weir adapts to the database,
// service recovers.
func ExampleWorld_metastable() {
	sent, answered := storm(func(w *sim.World, database *sim.Upstream) func() error {
		once := func() error {
			ctx, cancel := w.Clock().WithTimeout(context.Background(), time.Second, nil)
			defer cancel()
			_, err := database.Call(ctx)
			return err
		}
		return func() error {
			if once() == nil {
				return nil
			}
			return once()
		}
	})
	fmt.Printf("without weir: %.0f sent per second, %.0f%% answered\n", sent, 100*answered)

	sent, answered = storm(func(w *sim.World, database *sim.Upstream) func() error {
		policy := weir.Policy{Timeouts: weir.Timeouts{Attempt: time.Second}, Concurrency: weir.Concurrency{Auto: true}}
		policy.Retry.Attempts = 2
		u, err := weir.New("database", policy, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
		if err != nil {
			panic(err)
		}
		return func() error {
			_, err := weir.Do(context.Background(), u, weir.Call{Safe: true}, database.Call)
			return err
		}
	})
	fmt.Printf("with weir: %.0f sent per second, %.0f%% answered\n", sent, 100*answered)
	// Output:
	// without weir: 559 sent per second, 0% answered
	// with weir: 279 sent per second, 100% answered
}
