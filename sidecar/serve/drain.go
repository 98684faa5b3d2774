package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

var errDrained = errors.New("drain time is over")

// end reports this weir as not ready, serves for the lame duck time so that load balancers notice, and then drains.
func (s *Server) end(front *door, again <-chan os.Signal) error {
	close(s.left)
	s.page.Draining.Store(true)
	s.with.Tell(Stopping, "draining")
	patience, hurry := context.WithCancelCause(context.Background())
	defer hurry(nil)
	go func() {
		select {
		case sig := <-again:
			hurry(fmt.Errorf("second stop signal: %v", sig))
		case <-patience.Done():
		}
	}()
	if s.file.LameDuck > 0 {
		s.log.Info("not ready: still serving calls", "for", s.file.LameDuck.String())
		_ = clock.System.Sleep(patience, s.file.LameDuck) // if cut short, drain logs the cause
	}
	return s.drain(patience, front)
}

// drain refuses waiting calls, which another weir may serve. It waits for calls and deliveries in progress, until the
// drain time or patience ends.
func (s *Server) drain(patience context.Context, front *door) error {
	for _, u := range s.upstreams() {
		u.Drain()
	}
	s.proxy.Drain()
	s.proxy.Sockets().Drain(s.file.Drain / 2)
	s.log.Info("draining", "at_most", s.file.Drain.String())
	begin := time.Now()
	patience, cancel := context.WithTimeoutCause(patience, s.file.Drain, errDrained)
	defer cancel()
	delivered := s.deliveries.leave(patience)
	err := s.quiet(patience, front)
	cut := func(what string) {
		s.log.Warn("stopped with "+what+" in flight", "after", time.Since(begin).Round(time.Millisecond).String(), "cause", context.Cause(patience).Error())
	}
	if err != nil && patience.Err() != nil {
		front.close()
		delivered()
		cut("calls")
		return nil
	}
	if delivered() {
		cut("deliveries")
		return err
	}
	s.log.Info("stopped")
	return err
}

// quiet stops accepting calls and waits for calls in progress: first for those on the server's connections, then for
// upgraded ones.
func (s *Server) quiet(ctx context.Context, front *door) error {
	return errors.Join(front.shutdown(ctx), s.calls.none(ctx))
}

// A tally counts calls in progress. Unlike with a sync.WaitGroup, a wait can end with a context.
type tally struct {
	n    atomic.Int64
	zero chan struct{} // holds a value if n may have reached 0
}

func newTally() *tally { return &tally{zero: make(chan struct{}, 1)} }

func (t *tally) begin() { t.n.Add(1) }

func (t *tally) end() {
	if t.n.Add(-1) > 0 {
		return
	}
	select {
	case t.zero <- struct{}{}:
	default:
	}
}

// none waits until no calls are in progress.
func (t *tally) none(ctx context.Context) error {
	for t.n.Load() > 0 {
		select {
		case <-t.zero:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
