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

// next is the place that is there when so many places can have been taken, those that came back first.
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
		return true // it never can
	}
	here, then := line.At(now), line.At(at)
	low, cost := line.Low(then), line.Cost(c)
	p.pour(line, here)
	if s := p.returned(); s != nil { // what n leaves of it, and the burst has not passed then
		cost -= min(cost, max(0, min(s.Left(then, low), s.Left(then, line.Low(here))-line.Cost(n))))
	}
	return max(p.next(line, here, line.Cost(n)), low)+cost <= then
}

// then is exact for calls of one unit; of others the log says the least that it can take.
func (r *rolling) then(now time.Duration, ahead, n int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.After(now, r.paused, ahead, n)
}

// room plays both calls on the log, which it leaves as it is.
func (r *rolling) room(now time.Duration, n int64, at time.Duration, c int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Room(now, n, at, c)
}

// then fills the windows to come one behind the other.
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

// room: at an instant of a later window nothing that goes now matters.
func (x *byCalendar) room(now time.Duration, n int64, at time.Duration, c int64) bool {
	p, s := x.at(now)
	used, _ := s.units()
	return at >= p.until || used+n+c <= s.amount
}

// then: what is granted next is known elsewhere. What was left of the burst when that was heard goes at once, and
// what has come since as if nobody else took of it: the others may have.
func (x *leased) then(now time.Duration, ahead, n int64) time.Duration {
	wait, v := x.Ask(now, n), x.Look(now)
	if wait == bucket.Never || !(v.PerSecond > 0) {
		return wait
	}
	there := max(float64(v.Left), float64(v.Full)-v.Reset.Seconds()*v.PerSecond)
	lacks := float64(ahead) + float64(n) - min(float64(v.Full), there+wait.Seconds()*v.PerSecond)
	return wait + time.Duration(min(max(0, lacks)/v.PerSecond*float64(time.Second), longestAhead))
}

// longestAhead bounds a wait that is worked out with floating point, in nanoseconds.
const longestAhead = float64(10 * 365 * 24 * time.Hour)

// room: the store grants to all who ask, and keeps nothing for a call of one process.
func (x *leased) room(time.Duration, int64, time.Duration, int64) bool { return true }
