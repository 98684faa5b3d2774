package practice

import "time"

// A Tally counts requests by result.
type Tally struct {
	Served  int64
	Refused int64 // above the rate
	Failed  int64 // during the outage
}

// Arrived returns the sum.
func (t Tally) Arrived() int64 { return t.Served + t.Refused + t.Failed }

// Plus adds two tallies.
func (t Tally) Plus(o Tally) Tally {
	return Tally{t.Served + o.Served, t.Refused + o.Refused, t.Failed + o.Failed}
}

func (t *Tally) note(v verdict) {
	switch v {
	case served:
		t.Served++
	case refused:
		t.Refused++
	case failed:
		t.Failed++
	}
}

// Slot is the resolution of counts over time.
const Slot = 100 * time.Millisecond

// counts are tallies by slot and in total.
type counts struct {
	total Tally
	slots []Tally
	keep  int
}

func (c *counts) note(now time.Duration, v verdict) {
	c.total.note(v)
	slot := int(now / Slot)
	if slot >= c.keep {
		return
	}
	for len(c.slots) <= slot {
		c.slots = append(c.slots, Tally{})
	}
	c.slots[slot].note(v)
}
