// Package filestore keeps the limits of one machine in a file. Quotas, the state of shared breakers, and records
// such as idempotency records survive a restart, kill -9 and a power cut. One process holds the file. Several
// machines need another kind of store.
//
// A response is sent after its data is on the disk. Concurrent callers share one write, so each waits for the
// latency of the disk, not for its turn. Each write removes a few entries that are full again or expired, and their
// space is reused.
package filestore

import (
	"context"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// Options configure how a file is opened. The zero Options are for production.
type Options struct {
	// NoSync lets the system decide when writes reach the disk. Responses then survive kill -9, but not a power
	// cut, which may even damage the file.
	NoSync bool

	// Wait is how long Open waits for another process to release the file, as during a restart. 0 means 1s.
	Wait time.Duration

	// MaxSize is the maximum size of the file in bytes. 0 means no maximum.
	MaxSize int
}

// Store is a fleet.Store in a file. It is safe for concurrent use.
type Store struct {
	path  string
	db    *bolt.DB
	clock *ticker
	fleet rosters // used by the writer only

	mu      sync.Mutex
	arrived sync.Cond // the queue has an operation, or the store is closed
	queue   []*op
	broken  error // error of all operations from now on
	full    error // error of the latest write, if the disk was full
	closed  bool
	keepAll bool // removes no entries; for tests that compare with a store that forgets later
	done    chan struct{}
	once    sync.Once // closes the file
}

var _ fleet.Store = (*Store)(nil)

// Open opens the file or creates it. The error names the next step. It is ErrHeld if another process holds the
// file, ErrForeign if the file was not created by weir, and ErrDamaged if it is damaged.
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

// begin initializes a new file, or moves an old one to the present time.
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

// wrap adds the path of the file to an error.
func (s *Store) wrap(err error) error { return fmt.Errorf("store file %s: %w", s.path, err) }

// Init implements fleet.Store. A file does not lose data, so a group that it does not contain is new.
func (s *Store) Init(context.Context, string) error { return nil }

// Known implements fleet.Store.
func (s *Store) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close waits for the operations in the queue and releases the file. Another call of Close also waits for that.
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

// usable returns an error if the store or ctx has ended.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal()
}

// refusal returns why the store accepts no operations, or nil. The caller holds mu.
func (s *Store) refusal() error {
	if s.closed {
		return s.wrap(ErrClosed)
	}
	return s.broken
}
