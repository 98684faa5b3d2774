package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// mostJobs is the maximum number of callers' jobs in one request to the database.
const mostJobs = 64

// groups collects jobs of callers. Its goroutine sends all jobs that have accumulated to the database together.
type groups[J any] struct {
	*stored.Gatherer[*job[J]]
	do    func([]J) error // does all jobs, or none if it returns an error
	held  func() bool     // waits for another goroutine to take some of the jobs; true if it may have. Nil means no wait
	stop  chan struct{}
	once  sync.Once
	ended chan struct{}
}

// A job is one caller's operation.
type job[J any] struct {
	is   J
	err  error
	done chan struct{}
}

func newGroups[J any](do func([]J) error, held func() bool) *groups[J] {
	g := &groups[J]{Gatherer: stored.NewGatherer[*job[J]](mostJobs, 5*time.Millisecond), do: do, held: held, stop: make(chan struct{}), ended: make(chan struct{})}
	go g.run()
	return g
}

// want runs an operation and waits for it. If ctx ends before, want returns ErrUncertain, and the operation may still
// be done. The caller may read its results only if want returns nil.
func (g *groups[J]) want(ctx context.Context, is J) error {
	j := &job[J]{is: is, done: make(chan struct{})}
	g.Add(j)
	for stop := g.stop; ; {
		select {
		case <-j.done:
			return j.err
		case <-stop:
			if g.TakeBack(j) {
				return delivery.ErrClosed
			}
			stop = nil // it is in the last group
		case <-ctx.Done():
			if g.TakeBack(j) {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", delivery.ErrUncertain, context.Cause(ctx))
		}
	}
}

func (g *groups[J]) run() {
	defer close(g.ended)
	for all := g.next(); all != nil; all = g.next() {
		g.settle(all)
		g.Answers(len(all))
		for _, j := range all {
			close(j.done)
		}
	}
}

// next returns the next group, without the jobs that other goroutines took, so it may be empty. It returns nil after
// stop.
func (g *groups[J]) next() []*job[J] {
	for held := g.held != nil; held; held = g.held() {
		if !g.Ready(g.stop) {
			return nil
		}
	}
	return g.Next(g.stop)
}

// settle runs jobs. If the database refuses them, settle runs each half separately, so that an error in one job does
// not affect the rest.
func (g *groups[J]) settle(all []*job[J]) {
	if len(all) == 0 {
		return
	}
	wishes := make([]J, len(all))
	for i, j := range all {
		wishes[i] = j.is
	}
	err := g.do(wishes)
	if err != nil && len(all) > 1 && !errors.Is(err, delivery.ErrUncertain) && !unreachable(err) {
		g.settle(all[:len(all)/2])
		g.settle(all[len(all)/2:])
		return
	}
	for _, j := range all {
		j.err = err
	}
}

func (g *groups[J]) close() {
	g.once.Do(func() { close(g.stop) })
	<-g.ended
}

// again repeats a transaction that was rolled back because of a conflict.
func again(do func() error) (err error) {
	for range 5 {
		if err = do(); !clashed(err) {
			break
		}
	}
	return err
}
