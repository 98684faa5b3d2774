// Package machinestore keeps the limits that processes of one user share on one machine. One of the processes holds
// a file. The others send it requests over a socket in the same directory. When the holder ends, another process
// takes over the file and its data.
package machinestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
)

// A Store is a fleet.Store in a directory. It is safe for concurrent use.
type Store struct {
	file, socket string

	attachMu sync.Mutex // held while the store looks for the holder

	mu      sync.Mutex
	holder  *holder // nil if another process holds the file
	idle    []*link
	inUse   map[*link]bool
	stopped bool
}

var _ fleet.Store = (*Store)(nil)

const (
	fileName   = "limits.db"
	socketName = "limits.sock"
	maxIdle    = 64

	// attachTimeout bounds how long a process looks for the holder. It is longer than a holder needs to close the file.
	attachTimeout = 2 * time.Second
	attachEvery   = 2 * time.Millisecond
)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the store is closed")

// Open attaches to the holder of the directory, or becomes the holder. The directory must exist, and only this user
// may have access to it.
func Open(dir string) (*Store, error) {
	s := &Store{file: filepath.Join(dir, fileName), socket: filepath.Join(dir, socketName), inUse: make(map[*link]bool)}
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	_, l, err := s.reach(ctx)
	if l != nil {
		s.release(l)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// reach returns the file store if this process is the holder, or a link to the holder.
func (s *Store) reach(ctx context.Context) (fleet.Store, *link, error) {
	if h, l, err := s.known(); h != nil || l != nil || err != nil {
		return h, l, err
	}
	s.attachMu.Lock()
	defer s.attachMu.Unlock()
	for {
		if h, l, err := s.known(); h != nil || l != nil || err != nil {
			return h, l, err
		}
		if c, err := new(net.Dialer).DialContext(ctx, "unix", s.socket); err == nil {
			l := newLink(c)
			if err := s.use(l); err != nil {
				return nil, nil, err
			}
			return nil, l, nil
		}
		switch h, err := hold(s.file, s.socket); {
		case err == nil:
			return h.store, nil, s.held(h)
		case !errors.Is(err, filestore.ErrHeld):
			return nil, nil, err
		}
		// Another process holds the file, and is about to listen or to end.
		wait := time.NewTimer(attachEvery)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, nil, fmt.Errorf("store %s: the process that holds it does not respond: %w", s.file, context.Cause(ctx))
		case <-wait.C:
		}
	}
}

// known returns the file store if this process is the holder, or an idle link.
func (s *Store) known() (fleet.Store, *link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.idle); {
	case s.stopped:
		return nil, nil, ErrClosed
	case s.holder != nil:
		return s.holder.store, nil, nil
	case n > 0:
		l := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.inUse[l] = true
		return nil, l, nil
	}
	return nil, nil, nil
}

func (s *Store) use(l *link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		l.close()
		return ErrClosed
	}
	s.inUse[l] = true
	return nil
}

func (s *Store) held(h *holder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		h.close()
		return ErrClosed
	}
	s.holder = h
	return nil
}

// release keeps a link for the next call.
func (s *Store) release(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inUse, l)
	if s.stopped || len(s.idle) >= maxIdle {
		l.close()
		return
	}
	s.idle = append(s.idle, l)
}

// drop closes a link that failed and all idle links: their holder has probably ended.
func (s *Store) drop(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inUse, l)
	l.close()
	for _, idle := range s.idle {
		idle.close()
	}
	s.idle = nil
}

// Close detaches this process. If it is the holder, another process can take over the file.
func (s *Store) Close() error {
	s.mu.Lock()
	stopped, h := s.stopped, s.holder
	s.stopped, s.holder = true, nil
	for _, l := range s.idle {
		l.close()
	}
	for l := range s.inUse {
		l.close()
	}
	s.idle = nil
	s.mu.Unlock()
	if stopped || h == nil {
		return nil
	}
	return h.close()
}

// Take implements fleet.Store.
func (s *Store) Take(ctx context.Context, a *fleet.Ask) error {
	_, err := s.do(ctx, &request{Take: a})
	return err
}

// Beat implements fleet.Store.
func (s *Store) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	r, err := s.do(ctx, &request{Beat: b})
	return r.Standing, err
}

// Load implements fleet.Store.
func (s *Store) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	r, err := s.do(ctx, &request{Load: true, Group: group, Names: names})
	return r.Records, r.Now, err
}

// Swap implements fleet.Store.
func (s *Store) Swap(ctx context.Context, group string, record fleet.Record) (fleet.Record, bool, error) {
	r, err := s.do(ctx, &request{Swap: &record, Group: group})
	if err != nil {
		return fleet.Record{}, false, err
	}
	return r.Record, r.OK, nil
}

// Init implements fleet.Store. The file does not lose data, so a group that it does not contain is new.
func (s *Store) Init(context.Context, string) error { return nil }

// Known implements fleet.Store.
func (s *Store) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// do executes a request here or at the holder.
func (s *Store) do(ctx context.Context, q *request) (response, error) {
	for {
		if ctx.Err() != nil {
			return response{}, context.Cause(ctx)
		}
		store, l, err := s.reach(ctx)
		if err != nil {
			return response{}, err
		}
		if store != nil {
			r := execute(ctx, store, q)
			return r, r.err(q)
		}
		r, sent, err := l.ask(ctx, q)
		switch {
		case err == nil:
			s.release(l)
			return r, r.err(q)
		case sent || ctx.Err() != nil: // the holder may have executed it
			s.drop(l)
			return response{}, fmt.Errorf("store %s: %w", s.file, err)
		}
		s.drop(l)
	}
}

// A holder holds the file and executes the requests of other processes.
type holder struct {
	store    *filestore.Store
	listener net.Listener
	wg       sync.WaitGroup

	connsMu sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
}

// hold opens the file and listens. The lock of the file decides which process may replace the socket.
func hold(file, socket string) (*holder, error) {
	o := filestore.Options{NoSync: true, Wait: attachEvery} // a power cut also ends all processes
	store, err := filestore.Open(file, o)
	if errors.Is(err, filestore.ErrDamaged) {
		if err := os.Remove(file); err != nil {
			return nil, err
		}
		store, err = filestore.Open(file, o)
	}
	if err != nil {
		return nil, err
	}
	_ = os.Remove(socket) // of a holder that was killed
	l, err := net.Listen("unix", socket)
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	h := &holder{store: store, listener: l, conns: make(map[net.Conn]bool)}
	h.wg.Go(h.accept)
	return h, nil
}

func (h *holder) accept() {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.connsMu.Lock()
		if h.closed {
			_ = c.Close()
		} else {
			h.conns[c] = true
			h.wg.Go(func() { h.serve(c) })
		}
		h.connsMu.Unlock()
	}
}

func (h *holder) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		h.connsMu.Lock()
		delete(h.conns, c)
		h.connsMu.Unlock()
	}()
	answer(c, h.store)
}

// close removes the socket, and then releases the file.
func (h *holder) close() error {
	h.connsMu.Lock()
	h.closed = true
	_ = h.listener.Close() // it removes the socket
	for c := range h.conns {
		_ = c.Close()
	}
	h.connsMu.Unlock()
	h.wg.Wait()
	return h.store.Close()
}
