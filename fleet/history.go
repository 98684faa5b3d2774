package fleet

import (
	"slices"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A bucket cell keeps a history of what it granted, so that units which come back late still count. Fill alone cannot tell
// what they are worth. The most that the bucket may be filled is the largest of
//
//	V(s) = what was granted since s and has not come back - Drain x (now - s)
//
// over all instants s: that no V(s) exceeds Cap is the limit itself, for the window that begins at s. Units that come back
// lower V(s) for each s up to the instant of their grant, and leave later windows as they are. So they are worth what the
// largest V loses, which may be all of them however long ago they were granted. If calls reserve k times what they use and
// report after H, the limit allows min(1, (1 + burst/(rate x H))/k) of the rate, and a bucket with a history grants that.
//
// The history is a list of slots, the oldest first, each of what was granted after the slot before it and up to Number. The
// instants of a slot count as one, the last: that is V or more, by Drain x the slot's length at most, so slots are short
// where they are recent and become longer with age. Slots are read from the end of the bucket's history: a slot is dropped
// when a later one has a larger V, since that never changes again.
//
//	Number  the instant of the latest grant in the slot, by the supply's clock
//	Count   the weight of what was granted and has not come back
//	Grain   the least that the bucket was filled when the slot began; what was out counts as taken

const (
	// slotsPerFill is how many slots there are in the time in which a full bucket drains. Older ones are as long as a
	// slotsPerAge of their age at most. A slot's length is what a history may lose of the burst.
	slotsPerFill = 128
	slotsPerAge  = 64

	// maxSlots bounds a history. Of older slots nothing comes back.
	maxSlots = 400

	// compactEvery is after how many new slots a history is compacted.
	compactEvery = 16

	// longestHistory is the largest weight that drains within a history, so that sums are exact in a double.
	longestHistory = 1 << 50
)

// record notes a weight that was added at c.Fill.At, when the bucket was filled to before, and to base at least.
func (c *Cell) record(m *bucket.Meter, base, before, weight int64) {
	z, grain := c.Fill.At, slotGrain(m)
	n := len(c.Slots)
	if n == 0 {
		base = max(base, before) // nothing of it can come back
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

// slotGrain is the length of a new slot.
func slotGrain(m *bucket.Meter) int64 { return max(1, m.Cap/m.Drain/slotsPerFill) }

// fullest is the largest V, with what it is of each slot if each is not nil.
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

// compact drops slots that cannot matter any more, joins old ones, and folds the oldest into the next where there are too
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
		// The first slot stays as it is: it is not known when it began.
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

// unrecord takes out units that come back, and lowers the fill to what the rest allows.
func (c *Cell) unrecord(m *bucket.Meter, mark Mark, n int64) {
	if mark.At < c.Since || mark.Step != 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(c.Slots, mark.At, func(s Slot, at int64) int { return int(max(-1, min(1, s.Number-at))) })
	if i == len(c.Slots) {
		return
	}
	// What came back together by the earliest of several marks may be more than its slot has: the rest is taken from earlier
	// ones, where it lowers fewer windows.
	rest := timesMost(n, m.Unit)
	if i == len(c.Slots)-1 && c.Slots[i].Number == mark.At { // nothing was granted since
		c.Fill.Weight -= min(rest, c.Slots[i].Count, c.Fill.Weight)
	}
	for ; i >= 0 && rest > 0; i-- {
		w := min(c.Slots[i].Count, rest)
		c.Slots[i].Count -= w
		rest -= w
	}
	c.Fill.Weight = min(c.Fill.Weight, fullest(m, c.Slots, c.Fill.At, nil))
}

// forgetHistory makes all marks that were given until now worth nothing.
func (c *Cell) forgetHistory() { c.Slots, c.Since = nil, c.Fill.At+1 }
