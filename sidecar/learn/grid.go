package learn

import (
	"math"
	"slices"
	"time"
)

// A grid holds the usage of a bucket for each of many possible rates. The rate is known only after all data was read,
// and the data is not kept.
type grid struct {
	at     int64
	level  [rates]float64 // usage beyond the rate
	rested [rates]bool    // level was 0 since the latest throttle: the bucket was full
	most   [rates]float64 // highest level that was accepted after a rest
	onset  *[rates]onsets // nil until the first throttle
}

// The rates are 4% apart, from 0.001 to about 100,000 per second.
const (
	rates   = 470
	slowest = 0.001
	apart   = 1.04
)

var rateOf = func() (all [rates]float64) {
	for i := range all {
		all[i] = slowest * math.Pow(apart, float64(i))
	}
	return all
}()

// onsets are levels at which throttles began after a rest. The highest are kept, because lower ones had other
// reasons.
type onsets struct {
	kept [16]float32
	n    int
}

func (o *onsets) add(level float32) {
	o.n++
	least := 0
	for i, v := range o.kept {
		if v < o.kept[least] {
			least = i
		}
	}
	if level > o.kept[least] {
		o.kept[least] = level
	}
}

func newGrid() *grid {
	g := new(grid)
	for i := range g.rested {
		g.rested[i] = true
	}
	return g
}

// pass advances the time.
func (g *grid) pass(at int64) {
	long := time.Duration(at - g.at).Seconds()
	if g.at == 0 {
		long = math.Inf(1)
	}
	g.at = at
	if long <= 0 {
		return
	}
	for i := range g.level {
		if v := g.level[i] - rateOf[i]*long; v > 0 {
			g.level[i] = v
		} else {
			g.level[i], g.rested[i] = 0, true
		}
	}
}

func (g *grid) take(at int64, amount float64) {
	g.pass(at)
	for i := range g.level {
		g.level[i] += amount
		if g.rested[i] && g.level[i] > g.most[i] {
			g.most[i] = g.level[i]
		}
	}
}

func (g *grid) throttle(at int64) {
	g.pass(at)
	if g.onset == nil {
		g.onset = new([rates]onsets)
	}
	for i := range g.level {
		if g.rested[i] && g.level[i] > 0 {
			g.onset[i].add(float32(g.level[i]))
		}
		g.rested[i] = false
	}
}

// A burst is the usage beyond a rate before throttles began.
type burst struct {
	level float64 // lower quartile of the onsets that count
	n     int     // number of onsets that count: accepted levels are not much higher
	all   int     // number of times that throttles began
}

// Throttles are compared at rates slightly below and above the rate that was found. At a rate above the true one, an
// empty bucket looks full after a while. At a rate below it, a full bucket looks used up.
const below, above = 0.96, 1.02

func (g *grid) burst(rate float64) (b burst) {
	if g.onset == nil {
		return b
	}
	least := 0.7 * between(above*rate, func(i int) float64 { return g.most[i] })
	count := func(i int) float64 {
		o := &g.onset[i]
		kept := slices.Sorted(slices.Values(o.kept[:]))
		from, _ := slices.BinarySearch(kept, float32(max(least, math.SmallestNonzeroFloat32)))
		if kept = kept[from:]; len(kept) == 0 {
			return 0
		}
		b.n, b.all = len(kept), o.n
		return float64(kept[len(kept)/4])
	}
	b.level = between(below*rate, count)
	return b
}

// between interpolates between the two adjacent rates of the grid.
func between(rate float64, of func(i int) float64) float64 {
	at := math.Log(rate/slowest) / math.Log(apart)
	i := int(at)
	if i < 0 || i+1 >= rates {
		return 0
	}
	part := at - float64(i)
	low, high := of(i), of(i+1)
	if low == 0 || high == 0 {
		return max(low, high)
	}
	return low*(1-part) + high*part
}
