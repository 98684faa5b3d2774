package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sim"
)

// Ten minutes of two hundred calls a second, against an upstream that takes a hundred.
func Example() {
	w := sim.New(1)
	defer w.Close()
	hundred := bucket.Rate{Amount: 100, Per: time.Second}
	api := w.Upstream(sim.Behaviour{Rate: hundred, Latency: 50 * time.Millisecond})
	u, err := weir.New("api", weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: hundred}}}, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 20 {
		w.Go(func() {
			for range 600 {
				_, _ = weir.Do(context.Background(), u, weir.Call{Safe: true}, api.Call)
				_ = w.Clock().Sleep(context.Background(), 50*time.Millisecond)
			}
		})
	}
	err = w.Run()
	c := api.Counts()
	fmt.Println(w.Now().Round(time.Minute), c.OK, c.Throttled, err)
	// Output: 2m0s 12000 0 <nil>
}
