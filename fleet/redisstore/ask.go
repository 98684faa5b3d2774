package redisstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// exact is the bound up to which a script represents every integer.
const exact = 1 << 53

// largest is the largest number in a claim or a settlement, so that sums stay exact.
const largest = 1 << 50

// A home is one key of an ask. A cell is one limit of a home.
type (
	home struct {
		key   string
		first int // index of its first cell, in the order in which the script numbers the cells
		cells int
	}
	cell struct {
		name string
		home int
		nth  int // index within its home
	}
)

// encode writes an ask in the format that take.lua reads.
func (s *Store) encode(c *call, a *fleet.Ask) {
	c.place(a)
	s.tag(c, a.Group)
	c.end()
	s.lane(c, a.Group, a.Lane)
	s.members(c, a.Group)
	for i := range c.homes {
		s.key(c, a.Group, 'k', c.homes[i].key)
	}
	c.number(s.now())
	c.arg = binary.LittleEndian.AppendUint64(c.arg, a.ID)
	c.number(min(a.Copies, largest))
	c.short(len(c.homes), len(a.Claims), len(a.Settle))
	c.arg = append(c.arg, usual(a))
	c.short(size(a))
	for i := range a.Claims {
		k := &a.Claims[i]
		c.rule(k.Rule, k.Key, &k.Windows)
		c.number(min(k.Cost, largest), min(k.Extra, largest), min(k.Seen, largest), min(k.SeenBack, largest), min(k.Cold, largest))
	}
	for i := range a.Settle {
		k := &a.Settle[i]
		c.rule(k.Rule, k.Key, &k.Windows)
		c.number(min(k.Back, largest), k.Mark.At, k.Mark.Level, k.Mark.Step)
		c.number(min(k.Owe, largest), min(int64((k.Pause+time.Microsecond-1)/time.Microsecond), largest))
	}
	c.nkeys = len(c.ends)
	for i := range c.homes {
		c.fields(i)
	}
}

// usual returns 1 for claims of buckets without settlements. Nearly all asks are of this kind, for which the script
// has a fast path.
func usual(a *fleet.Ask) byte {
	if len(a.Settle) > 0 {
		return 0
	}
	for i := range a.Claims {
		if a.Claims[i].Rule.Shape != limit.Bucket {
			return 0
		}
	}
	return 1
}

// place collects the keys of an ask and the limits of each key.
func (c *call) place(a *fleet.Ask) {
	c.homes, c.cells = c.homes[:0], c.cells[:0]
	for i := range a.Claims {
		c.add(a.Claims[i].Key, a.Claims[i].Rule.Name)
	}
	for i := range a.Settle {
		c.add(a.Settle[i].Key, a.Settle[i].Rule.Name)
	}
	first := 1
	for i := range c.homes {
		c.homes[i].first = first
		first += c.homes[i].cells
	}
}

func (c *call) add(key, name string) {
	if c.cell(key, name) >= 0 {
		return
	}
	h := c.home(key)
	if h < 0 {
		h = len(c.homes)
		c.homes = append(c.homes, home{key: key})
	}
	c.cells = append(c.cells, cell{name, h, c.homes[h].cells})
	c.homes[h].cells++
}

func (c *call) home(key string) int {
	for i := range c.homes {
		if c.homes[i].key == key {
			return i
		}
	}
	return -1
}

func (c *call) cell(key, name string) int {
	for i := range c.cells {
		if k := &c.cells[i]; k.name == name && c.homes[k.home].key == key {
			return i
		}
	}
	return -1
}

func (c *call) rule(r *fleet.Rule, key string, w *limit.Windows) {
	k := &c.cells[c.cell(key, r.Name)]
	c.short(c.homes[k.home].first + k.nth)
	c.arg = append(c.arg, byte(r.Shape))
	switch r.Shape {
	case limit.Bucket:
		c.number(r.Meter.Unit, r.Meter.Drain, r.Meter.Cap, r.Hold)
	case limit.Rolling:
		tally := int64(0)
		if r.Tally {
			tally = 1
		}
		c.number(r.Amount, r.Ring.Grain, tally, r.Hold)
	default:
		c.number(r.Amount, w.Start.UnixMicro(), w.End.UnixMicro(), w.Next.UnixMicro())
	}
}

// fields appends the names of the limits of one key.
func (c *call) fields(home int) {
	c.short(c.homes[home].cells)
	for i := range c.cells {
		if c.cells[i].home != home {
			continue
		}
		c.text = appendName(append(c.text, 'l'), c.cells[i].name)
		c.end()
	}
}

// number appends integers as doubles, in the format of scripts.
func (c *call) number(all ...int64) {
	for _, n := range all {
		c.arg = binary.LittleEndian.AppendUint64(c.arg, math.Float64bits(float64(max(-exact, min(n, exact)))))
	}
}

func (c *call) short(all ...int) {
	for _, n := range all {
		c.arg = binary.LittleEndian.AppendUint16(c.arg, uint16(n))
	}
}
