package cache

import (
	"fmt"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// A memory holds entries up to a number of bytes. Rarely used entries are evicted first.
type memory struct {
	cache *otter.Cache[Key, *held]
	most  int // maximum bytes of one entry

	bytes, evicted atomic.Int64
}

// A held is an entry with its weight. It is immutable.
type held struct {
	Entry
	weight uint32
}

func newMemory(o Options) (*memory, error) {
	m := &memory{most: o.MaxEntry}
	c, err := otter.New(&otter.Options[Key, *held]{
		MaximumWeight:    uint64(o.kept()),
		Weigher:          func(_ Key, h *held) uint32 { return h.weight },
		OnAtomicDeletion: m.gone,
		// Callers do the cleanup, so there is no goroutine to wait for. No code here calls the library while it holds
		// its locks.
		Executor: func(tidy func()) { tidy() },
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	m.cache = c
	return m, nil
}

func (m *memory) get(k Key) (*held, bool) { return m.cache.GetIfPresent(k) }

// put stores an entry and reports whether it is small enough. It keeps an old entry that is better.
func (m *memory) put(k Key, e Entry, better func(old *Entry) bool) bool {
	size := k.size() + e.size()
	if size > m.most {
		return false
	}
	h := &held{Entry: e, weight: uint32(size)}
	m.bytes.Add(int64(size))
	now, _ := m.cache.Compute(k, func(old *held, found bool) (*held, otter.ComputeOp) {
		if found && better(&old.Entry) {
			return old, otter.CancelOp
		}
		return h, otter.WriteOp
	})
	if now != h {
		m.bytes.Add(-int64(size))
	}
	m.cache.CleanUp() // otherwise an idle cache could stay above its limit
	return true
}

// drop removes h, unless another entry has replaced it.
func (m *memory) drop(k Key, h *held) {
	m.cache.ComputeIfPresent(k, func(now *held) (*held, otter.ComputeOp) {
		if now == h {
			return nil, otter.InvalidateOp
		}
		return now, otter.CancelOp
	})
}

func (m *memory) forget(k Key) { m.cache.Invalidate(k) }

// gone counts an entry that the library removed.
func (m *memory) gone(e otter.DeletionEvent[Key, *held]) {
	m.bytes.Add(-int64(e.Value.weight))
	if e.Cause == otter.CauseOverflow {
		m.evicted.Add(1)
	}
}
