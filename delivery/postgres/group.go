package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

const (
	mostJobs = 64 // callers' wishes that are asked for at once
	lanes    = 1  // asks of one kind under way: while one is answered the next is gathered, and each waits for the disk
)

// groups have what callers want done together. Its goroutines each take what has come meanwhile and ask the database for all of it.
type groups[J any] struct {
	jobs  chan *job[J]
	do    func([]J) error // of all, or of none where it is an error
	stop  chan struct{}
	once  sync.Once
	lanes sync.WaitGroup
}

// A job is what one caller wants.
type job[J any] struct {
	is   J
	err  error
	done chan struct{}
}

func newGroups[J any](do func([]J) error) *groups[J] {
	g := &groups[J]{jobs: make(chan *job[J]), do: do, stop: make(chan struct{})}
	for range lanes {
		g.lanes.Go(g.run)
	}
	return g
}

// want has a wish done. If ctx ends while it is asked for, it may still be done: the error is ErrUncertain. What it finds
// is its caller's once want has returned without an error, and not otherwise.
func (g *groups[J]) want(ctx context.Context, is J) error {
	j := &job[J]{is: is, done: make(chan struct{})}
	select {
	case g.jobs <- j:
	case <-g.stop:
		return delivery.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", delivery.ErrUncertain, context.Cause(ctx))
	}
}

func (g *groups[J]) run() {
	var latest int // how many were asked for together
	var took time.Duration
	for {
		select {
		case j := <-g.jobs:
			all := g.more(j, latest, took/4)
			begin := time.Now()
			g.settle(all)
			latest, took = len(all), time.Since(begin)
			for _, j := range all {
				close(j.done)
			}
		case <-g.stop:
			return
		}
	}
}

// more are the jobs that have come, j first. Where several were answered just now their callers are likely to come again at once: those
// are waited for a little, or they would wait for all of this group, and the next, half as large, would cost as much.
func (g *groups[J]) more(j *job[J], latest int, most time.Duration) []*job[J] {
	all := g.there([]*job[J]{j})
	if latest < 2 {
		return all
	}
	over := time.NewTimer(min(most, 5*time.Millisecond))
	defer over.Stop()
	for full := min(len(all)+latest, mostJobs); len(all) < full; all = g.there(all) {
		select {
		case j := <-g.jobs:
			all = append(all, j)
		case <-over.C:
			return all
		}
	}
	return all
}

// there adds jobs whose callers wait.
func (g *groups[J]) there(all []*job[J]) []*job[J] {
	for len(all) < mostJobs {
		select {
		case j := <-g.jobs:
			all = append(all, j)
		default:
			return all
		}
	}
	return all
}

// settle asks for jobs, and for halves of them where the database refuses: what one has wrong is not another's.
func (g *groups[J]) settle(all []*job[J]) {
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
	g.lanes.Wait()
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
