package weir

import (
	"runtime"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/inflight"
)

// lost are the slots of permits that were dropped without a report. The garbage collector
// finds them, on a goroutine of its own: they are noted then, and given up by the next who
// asks for a slot and finds none, or looks.
type lost struct {
	mu    sync.Mutex // nothing else is locked while it is held
	total uint64
	slots []inflight.Slot
}

func (l *lost) add(s inflight.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.slots = append(l.slots, s)
}

func (l *lost) take() (slots []inflight.Slot, total uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots, l.slots = l.slots, nil
	return slots, l.total
}

// recover gives up what was lost, as if the callers had left: the upstream may still have
// the work. It returns how many were lost so far.
func (f *flight) recover(now time.Duration) (total uint64) {
	slots, total := f.lost.take()
	for _, s := range slots {
		f.bound.Left(now, s, nil)
	}
	return total
}

// A stray is what is noted of a permit that nobody can report any more.
type stray struct {
	lost *lost
	slot inflight.Slot
}

// leash lets the slot of a permit on the heap be found should it be dropped.
func (b *berth) leash() {
	if b.slot != 0 {
		b.leashed = runtime.AddCleanup(b, func(s stray) { s.lost.add(s.slot) }, stray{&b.flight.lost, b.slot})
	}
}
