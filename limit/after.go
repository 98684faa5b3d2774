package limit

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

func (p *places) then(now time.Duration, ahead, n int64) time.Duration {
	line := p.line.Load()
	if uint64(n-1) >= uint64(line.Full()) {
		return unlessZero(n)
	}
	all := ahead + n
	if all < 0 || all > math.MaxInt64/4/line.Unit() {
		return bucket.Never - 1
	}
	at := line.At(now)
	return line.Wait(now, p.next(line, at, line.Cost(all)))
}

// next returns the position that is there when cost positions can be taken, returned units first.
func (p *places) next(line *bucket.Line, at, cost int64) int64 {
	p.pour(line, at)
	low := line.Low(at)
	if s := p.returned(); s != nil {
		cost -= min(cost, s.Left(at, low))
	}
	return max(p.booked.Load(), low) + cost
}

func (p *places) room(now time.Duration, n int64, at time.Duration, c int64) bool {
	line := p.line.Load()
	if full := line.Full(); n > full || c > full {
		return true // n or c never fits
	}
	here, then := line.At(now), line.At(at)
	low, cost := line.Low(then), line.Cost(c)
	p.pour(line, here)
	if s := p.returned(); s != nil { // the part of the returned units that n leaves, and that the burst has not passed then
		cost -= min(cost, max(0, min(s.Left(then, low), s.Left(then, line.Low(here))-line.Cost(n))))
	}
	return max(p.next(line, here, line.Cost(n)), low)+cost <= then
}

// then is exact for calls of one unit. For larger calls, the log returns a lower bound.
func (r *rolling) then(now time.Duration, ahead, n int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.After(now, r.paused, ahead, n)
}

// room tries both calls on the log, which does not change.
func (r *rolling) room(now time.Duration, n int64, at time.Duration, c int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Room(now, n, at, c)
}

// then fills the windows to come one after the other.
func (x *byCalendar) then(now time.Duration, ahead, n int64) time.Duration {
	p, s := x.at(now)
	if n <= 0 || n > s.amount {
		return unlessZero(n)
	}
	used, _ := s.units()
	if s.paused < p.until {
		ahead -= max(0, s.amount-used)
	}
	if ahead+n <= 0 {
		return s.held(p, now)
	}
	start := x.open(p, s)
	for range min(mostWindows, (ahead+n-1)/s.amount) {
		_, start = x.calendar.windows.Window(start)
	}
	return s.until(p, now, start)
}

// room allows any call in a later window, which does not depend on usage now.
func (x *byCalendar) room(now time.Duration, n int64, at time.Duration, c int64) bool {
	p, s := x.at(now)
	used, _ := s.units()
	return at >= p.until || used+n+c <= s.amount
}

// then estimates when the store will grant n units. Units of the burst that the store reported can be used
// immediately. Units that have come since count as if no other process took any, though other processes may have.
func (x *leased) then(now time.Duration, ahead, n int64) time.Duration {
	wait, v := x.Ask(now, n), x.Look(now)
	if wait == bucket.Never || !(v.PerSecond > 0) {
		return wait
	}
	there := max(float64(v.Left), float64(v.Full)-v.Reset.Seconds()*v.PerSecond)
	lacks := float64(ahead) + float64(n) - min(float64(v.Full), there+wait.Seconds()*v.PerSecond)
	return wait + time.Duration(min(max(0, lacks)/v.PerSecond*float64(time.Second), longestAhead))
}

// longestAhead bounds, in nanoseconds, a wait that is computed in floating point.
const longestAhead = float64(10 * 365 * 24 * time.Hour)

// room returns true: the store grants to all processes, and keeps no units for a call of one of them.
func (x *leased) room(time.Duration, int64, time.Duration, int64) bool { return true }
