package bucket

// A Ring counts what went in the latest time in slots, for stores that hold
// rolling limits of any size: a unit is counted for as long as the window, and at
// most one slot longer. A Log is exact, but remembers every caller.
type Ring struct {
	Amount int64
	Grain  int64 // microseconds in a slot
}

// Slots is how many slots a window has.
const Slots = 200

// RingOf is the ring of a window. One that is shorter than 200 microseconds has
// slots of one microsecond, and so counts for that long.
func RingOf(w Window) Ring {
	return Ring{w.Amount, max(1, ceilDiv(ceilDiv(int64(w.Per), 1000), Slots))}
}

// Slot is the slot of an instant, in microseconds.
func (r *Ring) Slot(now int64) int64 { return now / r.Grain }

// Leaves is the instant at which a slot counts no more. It may be one of another
// ring, with its own grain, from before a change of the limit.
func (r *Ring) Leaves(slot, grain int64) int64 { return (slot+1)*grain + Slots*r.Grain }

// Window is for how many microseconds a unit counts at least; it counts for at most a
// slot longer.
func (r *Ring) Window() int64 { return Slots * r.Grain }
