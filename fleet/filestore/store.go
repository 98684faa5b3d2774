// Package filestore keeps the limits of one machine in a file, so that they survive
// a restart, kill -9 and a power cut: quotas, the state of shared breakers, and
// records such as those of idempotency. One process holds the file; several machines
// share a store of another kind.
//
// What is answered is on the disk. Callers that come at the same time share one
// write, so that the disk's latency, not its rate, is what each of them pays. What
// is full again, and what has had its time, is removed a little with each write; its
// room is used again.
package filestore

import (
	"context"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// Options say how a file is held. The zero Options are for production.
type Options struct {
	// NoSync leaves to the system when writes reach the disk. What was answered then
	// survives kill -9, but not a power cut, which may even damage the file.
	NoSync bool

	// Wait is how long to wait for another process to let go of the file, as it does
	// during a restart; 0 means 1s.
	Wait time.Duration

	// MaxSize is how many bytes the file may have; 0 means as many as the disk has.
	MaxSize int
}

// Store is a fleet.Store in a file. It is safe for concurrent use.
type Store struct {
	path  string
	db    *bolt.DB
	clock *ticker
	fleet rosters // the writer's

	mu      sync.Mutex
	arrived sync.Cond // something is in the queue, or the store is closed
	queue   []*op
	broken  error // why nothing can be asked any more
	full    error // of the latest write, if the disk was full
	closed  bool
	keepAll bool // nothing is removed; for a test that compares with a store which forgets later
	done    chan struct{}
	once    sync.Once // the file is let go
}

var _ fleet.Store = (*Store)(nil)

// Open opens the file or makes a new one. If it cannot, the error says what to do: it
// is ErrHeld if another process has the file, ErrForeign if it is none of weir's,
// ErrDamaged if it is not whole.
func Open(path string, o Options) (*Store, error) {
	return open(path, o, time.Now)
}

func open(path string, o Options, source func() time.Time) (*Store, error) {
	db, err := openFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, err)
	}
	s := &Store{path: path, db: db, done: make(chan struct{})}
	s.arrived.L = &s.mu
	if err := s.begin(source); err != nil {
		_ = closeFile(db)
		return nil, s.wrap(err)
	}
	go s.write()
	return s, nil
}

// begin makes a new file ready, or brings an old one to the present.
func (s *Store) begin(source func() time.Time) error {
	return guarded(func() error {
		return s.db.Update(func(b *bolt.Tx) error {
			seen, err := format(b)
			if err != nil {
				return err
			}
			var ahead time.Duration
			if s.clock, ahead = newTicker(source, seen); ahead > 0 {
				err = rebase(b, s.clock.now(), ahead)
			}
			if err == nil {
				s.fleet, err = openFleet(b)
			}
			return err
		})
	})
}

// wrap says which file an error is about.
func (s *Store) wrap(err error) error { return fmt.Errorf("store file %s: %w", s.path, err) }

// Init is fleet.Store's. A file forgets nothing, so a group that it does not know is new.
func (s *Store) Init(context.Context, string) error { return nil }

// Known is fleet.Store's.
func (s *Store) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close waits for what was asked already, and lets go of the file. Closing again waits
// for that, too.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.arrived.Signal()
	s.mu.Unlock()
	<-s.done
	var err error
	s.once.Do(func() { err = closeFile(s.db) })
	if err != nil {
		return s.wrap(err)
	}
	return nil
}

// usable reports why nothing can be asked of the store, if so.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal()
}

// refusal is why nothing is asked any more; mu is held.
func (s *Store) refusal() error {
	if s.closed {
		return s.wrap(ErrClosed)
	}
	return s.broken
}
