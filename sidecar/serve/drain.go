package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

var errDrained = errors.New("drain is over")

// drain refuses calls that wait, which another weir may take, and lets those under way end,
// unless that takes too long, or weir is told to stop once more.
func (s *Server) drain(front *http.Server, again <-chan os.Signal) error {
	s.page.Draining.Store(true)
	for _, u := range s.upstreams() {
		u.Drain()
	}
	s.proxy.Drain()
	s.log.Info("draining", "for at most", s.file.Drain.String())
	begin := time.Now()
	patience, cancel := context.WithTimeoutCause(context.Background(), s.file.Drain, errDrained)
	defer cancel()
	patience, hurry := context.WithCancelCause(patience)
	defer hurry(nil)
	go func() {
		select {
		case sig := <-again:
			hurry(fmt.Errorf("told to stop again: %v", sig))
		case <-patience.Done():
		}
	}()
	err := s.quiet(patience, front)
	if err != nil && patience.Err() != nil {
		_ = front.Close()
		s.log.Warn("stopped with calls under way", "after", time.Since(begin).Round(time.Millisecond).String(), "cause", context.Cause(patience).Error())
		return nil
	}
	s.log.Info("stopped")
	return err
}

// quiet takes no more calls, and waits for those under way: first those whose
// connections the server knows, then those that were upgraded.
func (s *Server) quiet(ctx context.Context, front *http.Server) error {
	return errors.Join(front.Shutdown(ctx), s.calls.none(ctx))
}

// A tally counts calls under way. Unlike a sync.WaitGroup it can be waited for
// until a context ends.
type tally struct {
	n    atomic.Int64
	zero chan struct{} // holds one if n may have come to 0
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

// none waits until there are none.
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
