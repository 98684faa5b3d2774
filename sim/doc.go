// Package sim runs programs in virtual time: the same weir.Do that serves real
// calls, ten minutes of it in a fraction of a second, and the same to the last
// nanosecond whenever it is run with the same seed.
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
// Goroutines that World.Go starts take turns: one of them runs, until it sleeps
// on the clock or returns. When all of them sleep, time jumps to the earliest
// instant for which one of them, or a timeout, was waiting. What is due at the
// same instant goes in the order in which it began to wait.
//
// In exchange the goroutines of a world must wait on nothing but its clock. One
// that blocks on a channel or a lock stops the world, because nobody else runs
// who could release it; Go's own deadlock detector, or the timeout of go test,
// then shows where it stands. One that sleeps for ever is found by Run, which
// says so. Nor may goroutines started in another way use the clock, and that
// includes functions given to context.AfterFunc.
package sim
