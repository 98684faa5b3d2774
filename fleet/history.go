package fleet

import (
	"slices"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A bucket cell keeps a history of its grants, so that units that return late still count. Fill alone cannot
// show their value. The fill of the bucket is at most the largest of
//
//	V(s) = units granted since s and not returned - Drain x (now - s)
//
// over all instants s. That no V(s) exceeds Cap is the limit itself, for the window that begins at s. Returned
// units lower V(s) for each s up to the instant of their grant, and do not change later windows. So their value
// is the decrease of the largest V. That may be their full weight, even if they were granted long ago. If calls
// reserve k times their usage and report after H, the limit allows min(1, (1 + burst/(rate x H))/k) of the
// rate. A bucket with a history grants that.
//
// The history is a list of slots, the oldest first. Each contains the grants after the previous slot and up to
// Number. All grants of a slot count at its last instant. That makes V larger by at most Drain x the slot's
// length. Therefore slots are short when they are new, and become longer with age. A slot is dropped when a
// later one has a larger V, since that never changes again.
//
//	Number  the instant of the latest grant in the slot, by the supply's clock
//	Count   the weight that was granted and not returned
//	Grain   the least fill of the bucket when the slot began; parts that are out count as taken

const (
	// slotsPerFill is the number of slots in the time in which a full bucket drains. An older slot is at most
	// 1/slotsPerAge of its age long. A history may lose the portion of the burst that drains in one slot's
	// length.
	slotsPerFill = 128
	slotsPerAge  = 64

	// maxSlots bounds a history. Units of dropped slots cannot return.
	maxSlots = 400

	// compactEvery is the number of new slots between compactions.
	compactEvery = 16

	// longestHistory is the largest weight that drains within a history, so that sums are exact in a double.
	longestHistory = 1 << 50
)

// record adds a weight at c.Fill.At to the history. before is the fill without it, and base the least fill.
func (c *Cell) record(m *bucket.Meter, base, before, weight int64) {
	z, grain := c.Fill.At, slotGrain(m)
	n := len(c.Slots)
	if n == 0 {
		base = max(base, before) // units that were granted before cannot return
	} else if s := &c.Slots[n-1]; s.Number >= z || s.Number/grain == z/grain {
		if z > s.Number {
			s.Grain, s.Number = s.Grain-min(s.Grain, m.Drains(z-s.Number)), z
		}
		s.Grain, s.Count = max(s.Grain, base), s.Count+weight
		return
	}
	c.Slots = append(c.Slots, Slot{z, weight, base})
	if len(c.Slots)%compactEvery == 0 || m.Drains(z-c.Slots[0].Number) > longestHistory {
		c.compact(m, z, grain)
	}
}

// slotGrain returns the length of a new slot.
func slotGrain(m *bucket.Meter) int64 { return max(1, m.Cap/m.Drain/slotsPerFill) }

// fullest returns the largest V. It calls each, if it is not nil, with the V of each slot and the largest V of
// later slots.
func fullest(m *bucket.Meter, slots []Slot, z int64, each func(i int, v, later int64)) (most int64) {
	var sum int64
	for i := len(slots) - 1; i >= 0; i-- {
		s := &slots[i]
		sum += s.Count
		v := max(0, s.Grain+sum-m.Drains(max(0, z-s.Number)))
		if each != nil {
			each(i, v, most)
		}
		most = max(most, v)
	}
	return most
}

// compact drops slots that cannot matter any more, joins old ones, and merges the oldest ones if there are too
// many.
func (c *Cell) compact(m *bucket.Meter, z, grain int64) {
	first := 0
	fullest(m, c.Slots, z, func(i int, v, later int64) {
		if v > later {
			first = i
		}
	})
	if first > 0 {
		c.Since = c.Slots[first-1].Number + 1
	}
	all := c.Slots[first:]
	n := 0
	for i := 1; i < len(all); i++ {
		s, o := all[i], &all[n]
		// Do not join the first slot, since its begin is unknown.
		if n > 0 && i < len(all)-1 && s.Number-all[n-1].Number <= grain+(z-s.Number)/slotsPerAge {
			*o = Slot{s.Number, o.Count + s.Count, max(s.Grain, o.Grain-min(o.Grain, m.Drains(s.Number-o.Number)))}
			continue
		}
		n++
		all[n] = s
	}
	all = all[:n+1]
	for len(all) > maxSlots || len(all) > 1 && m.Drains(z-all[0].Number) > longestHistory {
		o := all[0]
		all, c.Since = all[1:], o.Number+1
		all[0].Grain = max(all[0].Grain, o.Grain+o.Count-m.Drains(all[0].Number-o.Number))
	}
	c.Slots = slices.Clone(all)
}

// unrecord removes returned units, and lowers the fill to the largest V of the rest.
func (c *Cell) unrecord(m *bucket.Meter, mark Mark, n int64) {
	if mark.At < c.Since || mark.Step != 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(c.Slots, mark.At, func(s Slot, at int64) int { return int(max(-1, min(1, s.Number-at))) })
	if i == len(c.Slots) {
		return
	}
	// Returns that were combined under the earliest of several marks may be more than its slot contains. The
	// rest is taken from earlier slots, where it lowers fewer windows.
	rest := timesMost(n, m.Unit)
	if i == len(c.Slots)-1 && c.Slots[i].Number == mark.At { // no later grants
		c.Fill.Weight -= min(rest, c.Slots[i].Count, c.Fill.Weight)
	}
	for ; i >= 0 && rest > 0; i-- {
		w := min(c.Slots[i].Count, rest)
		c.Slots[i].Count -= w
		rest -= w
	}
	c.Fill.Weight = min(c.Fill.Weight, fullest(m, c.Slots, c.Fill.At, nil))
}

// forgetHistory makes all existing marks worthless.
func (c *Cell) forgetHistory() { c.Slots, c.Since = nil, c.Fill.At+1 }
