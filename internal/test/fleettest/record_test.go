//go:build unix

package fleettest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A grant is one admitted unit.
type grant struct {
	at    time.Duration // time of weir's grant, by a clock that all processes share
	heard time.Duration // time at which its caller continued: on a busy machine much later
	alone bool          // while the store was down; it counts like any other
}

// over returns by how many units the worst window exceeds the limit, and its position.
func over(l limit.Limit, all []grant, wall func(time.Duration) time.Time) (worst int64, where string) {
	var at []time.Duration
	for _, g := range all {
		at = append(at, g.at)
	}
	slices.Sort(at)
	switch l.Shape {
	case limit.Bucket:
		return overBucket(l, at)
	case limit.Rolling:
		return overRolling(l, at)
	}
	return overFixed(l, at, wall)
}

// asHeard returns the grants at the times at which their callers continued, and the largest delay.
func asHeard(all []grant) (heard []grant, late time.Duration) {
	for _, g := range all {
		late = max(late, g.heard-g.at)
		g.at = g.heard
		heard = append(heard, g)
	}
	return heard, late
}

// overBucket fills a bucket of the limit's rate with all units. The highest level minus the burst is the excess of the worst
// window.
func overBucket(l limit.Limit, at []time.Duration) (worst int64, where string) {
	var level float64
	var last time.Duration
	for _, t := range at {
		level = max(0, level-l.PerSecond()*(t-last).Seconds()) + 1
		last = t
		if n := int64(math.Ceil(level - float64(l.Full()) - 1e-6)); n > worst {
			worst, where = n, fmt.Sprintf("a window that ends at %v", t)
		}
	}
	return worst, where
}

func overRolling(l limit.Limit, at []time.Duration) (worst int64, where string) {
	first := 0
	for i, t := range at {
		for t-at[first] >= l.Per {
			first++
		}
		if n := int64(i-first+1) - l.Amount; n > worst {
			worst, where = n, fmt.Sprintf("%d from %v to %v", i-first+1, at[first], t)
		}
	}
	return worst, where
}

func overFixed(l limit.Limit, at []time.Duration, wall func(time.Duration) time.Time) (worst int64, where string) {
	count := make(map[time.Time]int64)
	for _, t := range at {
		start := l.Windows(wall(t)).Start
		count[start]++
		if n := count[start] - l.Amount; n > worst {
			worst, where = n, fmt.Sprintf("%d in the window of %v", count[start], start)
		}
	}
	return worst, where
}
