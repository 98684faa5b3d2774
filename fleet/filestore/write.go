package filestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// An op is an operation on the file for one caller. If run returns an error, it must not have changed anything.
type op struct {
	run   func(t *txn) error
	looks bool // it writes nothing
	state atomic.Int32
	err   error
	done  chan struct{}
}

const (
	waiting = iota
	running
	abandoned
)

// mostOps is the maximum number of callers that share one write.
const mostOps = 1000

// do runs an operation and waits until its result is on the disk, or ctx ends. If ctx ends after the write began,
// the operation may still be executed.
func (s *Store) do(ctx context.Context, run func(t *txn) error) error {
	return s.enqueue(ctx, &op{run: run, done: make(chan struct{})})
}

func (s *Store) enqueue(ctx context.Context, o *op) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.refusal(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.queue = append(s.queue, o)
	s.arrived.Signal()
	s.mu.Unlock()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		o.state.CompareAndSwap(waiting, abandoned)
		return context.Cause(ctx)
	}
}

// write executes the queue in batches until the store is closed.
func (s *Store) write() {
	defer close(s.done)
	for {
		batch, err := s.next()
		if batch == nil {
			return
		}
		if err == nil {
			err = s.commit(batch)
		}
		for _, o := range batch {
			if err != nil {
				o.err = err
			}
			close(o.done)
		}
	}
}

// next waits for operations. It returns nil when the store is closed and the queue is empty.
func (s *Store) next() (batch []*op, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.arrived.Wait()
	}
	n := min(len(s.queue), mostOps)
	if n == 0 {
		return nil, s.broken
	}
	batch, s.queue = s.queue[:n:n], s.queue[n:]
	return batch, s.broken
}

// commit writes a batch. After a disk error other than a full disk, the contents of the disk are unknown. The store
// then stays broken until it is opened again.
func (s *Store) commit(batch []*op) error {
	if !slices.ContainsFunc(batch, func(o *op) bool { return !o.looks }) {
		s.each(&txn{fleet: &s.fleet}, batch)
		return s.full
	}
	err := guarded(func() error {
		return s.db.Update(func(b *bolt.Tx) error { return s.run(b, batch) })
	})
	switch s.full = nil; {
	case err == nil:
		s.fleet.wrote()
		return nil
	case isFull(err):
		s.full = s.wrap(fmt.Errorf("%w (%w)", ErrFull, err))
		return s.full
	}
	err = s.wrap(fmt.Errorf("nothing can be written until weir is restarted: %w", err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
	return err
}

func (s *Store) run(b *bolt.Tx, batch []*op) error {
	t, err := newTxn(b)
	if err != nil {
		return err
	}
	t.fleet = &s.fleet
	s.each(t, batch)
	return t.finish(s.keepAll)
}

func (s *Store) each(t *txn, batch []*op) {
	for _, o := range batch {
		if !o.state.CompareAndSwap(waiting, running) {
			continue // its caller has left
		}
		t.now = s.clock.now()
		if o.err = o.run(t); errors.Is(o.err, ErrDamaged) {
			o.err = s.wrap(o.err)
		}
	}
}

// A txn is one write to the file for several callers.
type txn struct {
	meta                  *bolt.Bucket
	cells, lanes, records *part
	fleet                 *rosters

	now     time.Time
	changed map[string]*fleet.Cell
	err     error // of the file; the write is rolled back
	touched int   // number of entries written
}

func newTxn(b *bolt.Tx) (t *txn, err error) {
	t = &txn{meta: b.Bucket(bucketMeta), changed: make(map[string]*fleet.Cell)}
	var errs [3]error
	t.cells, errs[0] = partOf(b, bucketCells)
	t.lanes, errs[1] = partOf(b, bucketLanes)
	t.records, errs[2] = partOf(b, bucketRecords)
	return t, errors.Join(errs[:]...)
}

// finish writes the changes, and removes some useless entries.
func (t *txn) finish(keepAll bool) error {
	for k, c := range t.changed {
		t.put(t.cells, []byte(k), encodeCell(c))
	}
	if t.err == nil && !t.now.IsZero() {
		if t.err = setNumber(t.meta, keyClock, t.now.UnixMicro()); !keepAll {
			t.sweep()
		}
	}
	if t.err == nil {
		t.err = t.fleet.finish(t.meta)
	}
	for _, p := range []*part{t.cells, t.lanes, t.records} {
		if t.err == nil {
			t.err = p.finish(t.meta)
		}
	}
	return t.err
}

func (t *txn) put(p *part, key, value []byte) {
	t.touched++
	if t.err == nil {
		t.err = p.put(key, value)
	}
}

// cell returns the cell of a limit and key, including changes of this write. finish writes only cells in changed.
func (t *txn) cell(k string) (*fleet.Cell, error) {
	if c := t.changed[k]; c != nil {
		return c, nil
	}
	v := t.cells.Get([]byte(k))
	if v == nil {
		return &fleet.Cell{}, nil
	}
	return decodeCell(v)
}
