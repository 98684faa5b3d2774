package serve

import (
	"context"
	"os"
)

// A Running server serves in this process, until Stop or Close.
type Running struct {
	*Server
	stop   context.CancelFunc
	reload chan os.Signal
	hurry  chan os.Signal
	ended  chan struct{}
	err    error // once ended is closed
}

// Start serves what the file at path says, and returns when it listens.
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

// Addr is where it takes calls.
func (s *Server) Addr() string { return s.main.Addr().String() }

// AdminAddr is where its admin listener is; "" if it has none.
func (s *Server) AdminAddr() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.Addr().String()
}

// Reload has it read its file again; the log says how that went.
func (r *Running) Reload() {
	select {
	case r.reload <- os.Interrupt:
	case <-r.ended:
	}
}

// Stop takes no more calls, waits for those under way as the file's drain says, and returns why it ended, if not for that.
func (r *Running) Stop() error {
	r.stop()
	<-r.ended
	return r.err
}

// Close is Stop that cuts calls under way.
func (r *Running) Close() error {
	for r.stop(); ; {
		select {
		case r.hurry <- os.Interrupt: // the first may be what it begins to drain for
		case <-r.ended:
			return r.err
		}
	}
}
