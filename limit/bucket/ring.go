package bucket

// A Ring counts recent usage in slots, for stores that hold rolling limits of any size. A unit counts for the window
// and at most one slot longer. A Log is exact, but stores every call. A Ring is a value and may be shared.
type Ring struct {
	Amount int64
	Grain  int64 // microseconds per slot
}

// Slots is the number of slots per window.
const Slots = 200

// RingOf returns the ring of a window. If the window is shorter than 200 microseconds, its slots are one microsecond
// long, so units count for 200.
func RingOf(w Window) Ring {
	return Ring{w.Amount, max(1, ceilDiv(ceilDiv(int64(w.Per), 1000), Slots))}
}

// Slot returns the slot of an instant, in microseconds.
func (r *Ring) Slot(now int64) int64 { return now / r.Grain }

// Leaves returns the instant at which a slot no longer counts. The slot may belong to a ring with another grain, from
// before a change of the limit.
func (r *Ring) Leaves(slot, grain int64) int64 { return (slot+1)*grain + Slots*r.Grain }

// Window returns the microseconds for which a unit counts at least. It counts at most a slot longer.
func (r *Ring) Window() int64 { return Slots * r.Grain }
