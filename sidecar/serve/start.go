package serve

import (
	"context"
	"os"
)

// A Running is a server that runs in this process, until Stop or Close. It is safe for concurrent use, except for
// Run, which Start calls.
type Running struct {
	*Server
	stop   context.CancelFunc
	reload chan os.Signal
	hurry  chan os.Signal
	ended  chan struct{}
	err    error // valid once ended is closed
}

// Start starts a server with the file at path, and returns when it listens.
func Start(path string, o Options) (*Running, error) {
	s, err := New(path, o)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Running{Server: s, stop: stop, reload: make(chan os.Signal), hurry: make(chan os.Signal), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = s.Run(ctx, r.reload, r.hurry)
	}()
	return r, nil
}

// Addr returns the address at which the server accepts calls.
func (s *Server) Addr() string { return s.main.Addr().String() }

// AdminAddr returns the address of the admin listener, or "" if there is none.
func (s *Server) AdminAddr() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.Addr().String()
}

// Reload reloads the file. The result is logged.
func (r *Running) Reload() {
	select {
	case r.reload <- os.Interrupt:
	case <-r.ended:
	}
}

// Stop stops accepting calls and waits for calls in flight, at most the file's drain time. It returns the error that
// ended the server, if any.
func (r *Running) Stop() error {
	r.stop()
	<-r.ended
	return r.err
}

// Close is like Stop, but aborts calls in flight.
func (r *Running) Close() error {
	for r.stop(); ; {
		select {
		case r.hurry <- os.Interrupt: // the first one may only start the drain
		case <-r.ended:
			return r.err
		}
	}
}
