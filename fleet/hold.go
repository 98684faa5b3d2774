package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// The functions below enforce a limit whose processes hold their grants for different times, because their
// leases or guards differ, or because only some have read a new file. With burst B and rate R, a process that
// holds for h expects the store to grant at most B - R*h at once, since R*h may be used later than it was
// granted. So a cell uses the longest hold of all processes.
//
// Why that is enough for a bucket: let a window of length t begin at s. Let the first unit used in it have been
// granted at g with a hold h, so g >= s - h. The remaining units at g were at most B - R*h. They grow only with
// time, at R, and never by a change of the hold. So at most B - R*h + R*(t + h) units are used.

// holdMemory is how many microseconds the longest hold is kept after its last use. Returning to a shorter hold
// costs rate x difference. The difference is at most longestLease, so that is at most a thirtieth of the units
// that accrue meanwhile.
var holdMemory = time.Minute.Microseconds()

// holdTokens reduces the hold of a drained bucket to the requester's, if the longest hold was not used lately.
// That must not increase the remaining units, so the difference is taken. The reduction is immediate if the
// longer hold leaves no room for one unit.
func (c *Cell) holdTokens(at *Supply, r *Rule) {
	if c.Hold <= r.Hold {
		return
	}
	w := r.Meter.Drains(c.Hold - r.Hold)
	if isRecent(at.Z, c.HeldAt) && w <= r.Meter.Cap-r.Meter.Unit {
		return
	}
	c.pour(at, r, w)
	c.Hold, c.HeldAt = r.Hold, at.Z
}

// holds records the hold of a grant. Refused processes hold no units.
func (c *Cell) holds(at *Supply, r *Rule) {
	if c.Hold <= r.Hold {
		c.Hold, c.HeldAt = r.Hold, at.Z
	}
}

// isRecent reports whether a hold is still kept. A hold of the far future was recorded by a wrong clock.
func isRecent(now, heldAt int64) bool { return now-heldAt < holdMemory && heldAt-now < holdMemory }

// withheld returns the fill plus the weight that is withheld because other processes hold longer than the
// requester.
func (c *Cell) withheld(f bucket.Fill, r *Rule) bucket.Fill {
	if c.Hold > r.Hold {
		f.Weight += r.Meter.Drains(c.Hold - r.Hold)
	}
	return f
}

// holdSlots reduces the hold of a rolling limit to the requester's. It waits until no slots of another window
// remain. They may belong to the process that holds longest, and count for that much longer.
func (c *Cell) holdSlots(r *Rule) {
	if c.Hold <= r.Hold {
		return
	}
	for i := range c.Slots {
		if c.Slots[i].Grain != r.Ring.Grain {
			return
		}
	}
	c.Hold = r.Hold
}
