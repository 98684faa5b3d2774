// Package sim runs programs in virtual time: the same weir.Do that serves real calls. Ten minutes take a fraction of
// a second, and runs with the same seed are identical to the nanosecond.
//
//	w := sim.New(1)
//	defer w.Close()
//	api := w.Upstream(sim.Behaviour{Rate: bucket.Rate{Amount: 100, Per: time.Second}, Latency: 50 * time.Millisecond})
//	u, err := weir.New("api", policy, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
//	...
//	for range 50 {
//		w.Go(func() { weir.Do(context.Background(), u, weir.Call{Safe: true}, api.Call) })
//	}
//	err = w.Run()
//
// Goroutines that World.Go starts take turns: one of them runs until it sleeps on the clock or returns. When all of
// them sleep, time jumps to the earliest instant for which one of them, or a timeout, waits. Events at the same
// instant happen in the order in which they began to wait.
//
// A model of a client is a function that World.Go runs: it calls, and sleeps on the clock between its calls. A model of
// an upstream is a function that weir.Do calls: it sleeps as long as the work takes, and returns a result. An error can
// implement outcome.Classifier to be a throttle or a rejection. World.Upstream has a rate, latency, capacity and
// outages. Models need no locks, because goroutines of a world take turns. Their random numbers come from World.Rand.
// The examples of World have both kinds of models, and reproduce published results.
//
// In exchange the goroutines of a world must wait only for its clock. A goroutine that blocks on a channel or a lock
// stops the world, because no other goroutine runs that could release it. Go's deadlock detector, or the timeout of
// go test, then shows its position. Run returns an error if a goroutine sleeps forever. Goroutines started in another
// way must not use the clock. This includes functions passed to context.AfterFunc.
//
// Attempts of weir and Clock.WithTimeout make contexts of the clock. While goroutines sleep on other contexts, such as
// one of context.WithCancel, each event checks all of them: use only a few.
package sim
