package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// What follows keeps a limit whose processes differ in for how long they hold what they
// were granted: by their lease or guard, or as some of them have read a new file and others
// have not. With a burst B and a rate R, whoever holds for h expects the store to let B - R*h go at once, as
// R*h may go later than it was granted. So a cell allows for the longest hold, of whoever asks.
//
// Why that is enough, for a bucket: let a window of length t begin at s, and the first
// unit that goes in it have been granted at g, by a hold h, so g >= s - h. What was left at g was
// B - R*h at most. What is left grows with time only, at R, and never by a change of the hold.
// So B - R*h + R*(t + h) at most go.

// holdMemory is for how many microseconds the longest hold is kept after it was used last. To hold
// shorter again costs rate x difference, longestLease at most: a thirtieth of what comes meanwhile.
var holdMemory = time.Minute.Microseconds()

// holdTokens lets a bucket that has been drained hold for no longer than who asks, if the longest hold
// was not used of late. Nothing may be left then that was not before: the difference is
// taken. So it is at once if with the longer hold not a unit would ever be left.
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

// holds notes for how long what is granted may be held. Who is refused holds nothing.
func (c *Cell) holds(at *Supply, r *Rule) {
	if c.Hold <= r.Hold {
		c.Hold, c.HeldAt = r.Hold, at.Z
	}
}

// isRecent reports whether a hold is to be remembered. One of the future was noted by a clock that was wrong.
func isRecent(now, heldAt int64) bool { return now-heldAt < holdMemory && heldAt-now < holdMemory }

// withheld is a fill with what is not to be granted as others hold longer than who asks.
func (c *Cell) withheld(f bucket.Fill, r *Rule) bucket.Fill {
	if c.Hold > r.Hold {
		f.Weight += r.Meter.Drains(c.Hold - r.Hold)
	}
	return f
}

// holdSlots lets a rolling limit hold for no longer than who asks. Slots of another window than
// the asker's may be of who holds longest, and count for so much longer, until the last of them
// has left.
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
