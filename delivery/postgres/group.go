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

// mostJobs is how many callers' wishes are asked for at once.
const mostJobs = 64

// groups have what callers want done together. Its goroutine takes what has come meanwhile and asks the database for all of it.
type groups[J any] struct {
	*stored.Gatherer[*job[J]]
	do    func([]J) error // of all, or of none where it is an error
	held  func() bool     // waits, once jobs are there, for another to take some; true if one may have done so. nil does not wait
	stop  chan struct{}
	once  sync.Once
	ended chan struct{}
}

// A job is what one caller wants.
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

// want has a wish done. If ctx ends while it is asked for, it may still be done: the error is ErrUncertain. What it finds
// is its caller's once want has returned without an error, and not otherwise.
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

// next is the next group, of what nobody else has taken; nil if it is to stop. It may be empty.
func (g *groups[J]) next() []*job[J] {
	for held := g.held != nil; held; held = g.held() {
		if !g.Ready(g.stop) {
			return nil
		}
	}
	return g.Next(g.stop)
}

// settle asks for jobs, and for halves of them where the database refuses: what one has wrong is not another's.
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

// again asks until the transaction is not undone for another's sake.
func again(do func() error) (err error) {
	for range 5 {
		if err = do(); !clashed(err) {
			break
		}
	}
	return err
}
