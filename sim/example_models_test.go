package sim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sim"
)

// A user is a model of a client: it looks at a page for a while, loads the next one, and leaves if that takes long.
type user struct {
	w              *sim.World
	load           func(ctx context.Context) error
	pages, patient time.Duration // average time between pages; how long it waits for one
}

// visit loads at most n pages, and reports whether the user saw them all.
func (u *user) visit(n int) bool {
	for range n {
		ctx, cancel := u.w.Clock().WithTimeout(context.Background(), u.patient, nil)
		err := u.load(ctx)
		cancel()
		if err != nil {
			return false
		}
		_ = u.w.Clock().Sleep(context.Background(), time.Duration(u.w.Rand().ExpFloat64()*float64(u.pages)))
	}
	return true
}

// A model of clients: users that arrive at random, and leave if a page takes more than two seconds.
func ExampleWorld_client() {
	w := sim.New(1)
	defer w.Close()
	api := w.Upstream(sim.Behaviour{Latency: 50 * time.Millisecond})
	policy := weir.Policy{Limits: []limit.Limit{{Name: "pages", Rate: bucket.Rate{Amount: 10, Per: time.Second}}}}
	u, err := weir.New("api", policy, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		panic(err)
	}
	content, left := 0, 0
	w.Go(func() {
		for range 1000 {
			w.Go(func() {
				one := user{w: w, pages: 5 * time.Second, patient: 2 * time.Second, load: func(ctx context.Context) error {
					_, err := weir.Do(ctx, u, weir.Call{Safe: true}, api.Call)
					return err
				}}
				if one.visit(10) {
					content++
				} else {
					left++
				}
			})
			_ = w.Clock().Sleep(context.Background(), time.Duration(w.Rand().ExpFloat64()*float64(time.Second)))
		}
	})
	err = w.Run()
	fmt.Println(content, "saw all pages,", left, "left:", err)
	// Output:
	// 952 saw all pages, 48 left: <nil>
}

var errBusy = errors.New("busy")

// A pool is a model of an upstream: a few workers with a bounded queue. It needs no locks, because the goroutines of a world
// take turns.
type pool struct {
	w     *sim.World
	free  []time.Duration // when each worker is done
	queue time.Duration   // the longest wait for a worker
}

// call is passed to weir.Do. A call is refused if no worker will be free in time.
func (p *pool) call(ctx context.Context) (struct{}, error) {
	first := &p.free[0]
	for i := range p.free {
		if p.free[i] < *first {
			first = &p.free[i]
		}
	}
	now := p.w.Now()
	begin := max(now, *first)
	if begin-now > p.queue {
		return struct{}{}, errBusy
	}
	*first = begin + time.Duration(p.w.Rand().ExpFloat64()*float64(100*time.Millisecond))
	return struct{}{}, p.w.Clock().Sleep(ctx, *first-now)
}

// A model of an upstream: four workers, each with 10 calls per second, that refuse calls which would wait for 0.5 s.
func ExampleWorld_upstream() {
	w := sim.New(1)
	defer w.Close()
	p := &pool{w: w, free: make([]time.Duration, 4), queue: 500 * time.Millisecond}
	u, err := weir.New("pool", weir.Policy{}, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		panic(err)
	}
	answered, failed := 0, 0
	w.Go(func() {
		for range 10_000 {
			w.Go(func() {
				if _, err := weir.Do(context.Background(), u, weir.Call{Safe: true}, p.call); err == nil {
					answered++
				} else {
					failed++
				}
			})
			_ = w.Clock().Sleep(context.Background(), time.Second/38)
		}
	})
	err = w.Run()
	fmt.Println(answered, "answered,", failed, "failed:", err)
	// Output:
	// 9971 answered, 29 failed: <nil>
}
