package cache

import (
	"fmt"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// A memory holds entries up to a number of bytes. What is asked for seldom goes first.
type memory struct {
	cache *otter.Cache[Key, *held]
	most  int // bytes of one entry

	bytes, evicted atomic.Int64
}

// held is an entry and what it weighs. It is never changed.
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
		// There is no goroutine to wait for: what is to be tidied up, callers do as they come.
		// Nothing here calls the library back while it holds its locks.
		Executor: func(tidy func()) { tidy() },
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	m.cache = c
	return m, nil
}

func (m *memory) get(k Key) (*held, bool) { return m.cache.GetIfPresent(k) }

// put reports whether an entry is small enough. An old one that is better is left.
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
	m.cache.CleanUp() // or an idle cache could stay above its size
	return true
}

// drop removes what was found, unless another is in its place by now.
func (m *memory) drop(k Key, h *held) {
	m.cache.ComputeIfPresent(k, func(now *held) (*held, otter.ComputeOp) {
		if now == h {
			return nil, otter.InvalidateOp
		}
		return now, otter.CancelOp
	})
}

func (m *memory) forget(k Key) { m.cache.Invalidate(k) }

// gone counts what the library let go of.
func (m *memory) gone(e otter.DeletionEvent[Key, *held]) {
	m.bytes.Add(-int64(e.Value.weight))
	if e.Cause == otter.CauseOverflow {
		m.evicted.Add(1)
	}
}
