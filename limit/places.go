package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A places is a local bucket.
//
// Its state is what it has given away, on an axis of supply. Places are positions on that axis, and a timetable
// determines when each of them comes. A place is given to one call only, after it has come and before the burst has
// passed it. That proves that no window of length t sees more than burst + rate*t. A queue that wakes late may count
// the burst from up to mostLate ago (trySince), so that units that came meanwhile go immediately.
//
// The timetable (line) changes seldom and all callers read it. booked is the last place given away. It is the only
// word that a decision writes, except for returned places (see kept) and during contention between cores (see
// blocks).
type places struct {
	line   atomic.Pointer[bucket.Line]
	booked atomic.Int64
	more   atomic.Pointer[more] // nil for most
}

// A Turn identifies units that Take has taken, so that Back can return them. The zero Turn has no units.
type Turn struct{ bucket.Turn }

// evicted is the value of booked after the limiter was evicted: no place behind it is ever reached.
const evicted = bucket.End

const lowest = math.MinInt64 / 2 // lower than any place

// try decides nearly every call, with one load and one compare-and-swap. A cost of 0 is always met. A negative cost,
// or one above the burst, is never met. try also works for other shapes.
func (p *places) try(now time.Duration, n int64, core *core) (Turn, bool) {
	if p.more.Load() != nil {
		return p.tryMore(now, n, core)
	}
	line := p.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, n == 0
	}
	at := line.At(now)
	booked := p.booked.Load()
	t := line.Next(booked, at, line.Cost(n))
	if t.Place > at {
		return Turn{}, false
	}
	if p.booked.CompareAndSwap(booked, t.Place) {
		return Turn{t}, true
	}
	p.contended(line, now, n)
	return p.tryMore(now, n, core)
}

// trySince is try for a call that has been entitled to go since an instant: the burst counts from then on. Returned
// places do not gain value by that.
func (p *places) trySince(now, since time.Duration, n int64, core *core) (Turn, bool) {
	line := p.line.Load()
	if since < now && p.instead() == nil && p.returned() == nil && uint64(n-1) < uint64(line.Full()) && !line.Paused(now) {
		booked := p.booked.Load()
		if t := line.Next(booked, line.At(since), line.Cost(n)); t.Place <= line.At(now) && p.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, true
		}
	}
	return p.try(now, n, core)
}

// tryMore is try for a limiter that has more, or may have it.
func (p *places) tryMore(now time.Duration, n int64, core *core) (Turn, bool) {
	if s := p.instead(); s != nil {
		t, _, ok := s.take(now, n)
		return t, ok
	}
	line := p.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, n == 0
	}
	at, cost := line.At(now), line.Cost(n)
	if b := p.blocks(); b != nil && n == 1 && b.on(now) {
		if t, ok := b.take(p, line, at, core); ok {
			return t, true
		}
	}
	for p.returned() == nil {
		booked := p.booked.Load()
		t := line.Next(booked, at, cost)
		if t.Place > at {
			break
		}
		if p.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, true
		}
		p.contended(line, now, n)
	}
	p.pour(line, at)
	if p.returned() == nil {
		return Turn{}, false
	}
	return p.gather(line, at, cost)
}

// gather takes cost places, first from the returned ones and the rest from the line. If other calls are faster, it
// puts back what it has taken. Such a turn may have gaps. The positions of its places are then unknown, so each has
// the value of the lowest.
func (p *places) gather(line *bucket.Line, at, cost int64) (Turn, bool) {
	low, back := line.Low(at), &p.grow().returned
	if back.left(at, low)+max(0, at-max(p.booked.Load(), low)) < cost {
		return Turn{}, false
	}
	got := back.take(at, low, cost)
	for got.Cost < cost {
		booked := p.booked.Load()
		t := line.Next(booked, at, cost-got.Cost)
		if t.Place > at { // somebody was faster
			if got.Cost > 0 {
				back.put(got)
			}
			return Turn{}, false
		}
		if p.booked.CompareAndSwap(booked, t.Place) {
			got = got.And(t)
		}
	}
	return Turn{got}, true
}

// there returns how many places can be taken when the line has reached at.
func (p *places) there(line *bucket.Line, at int64) int64 {
	low := line.Low(at)
	places := max(0, at-max(p.booked.Load(), low))
	if s := p.returned(); s != nil {
		places += s.Left(at, low)
	}
	if b := p.blocks(); b != nil {
		places += b.left(line, at)
	}
	return places
}

func (p *places) take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	if p.more.Load() == nil {
		if t, wait = p.takeOrAsk(now, n); wait == 0 {
			return t, 0, true
		} else if wait > 0 {
			return Turn{}, wait, false
		}
	}
	for {
		if t, ok = p.try(now, n, new(core)); ok { // at first, and when something came back meanwhile
			return t, 0, true
		}
		if wait = p.ask(now, n); wait > 0 {
			return Turn{}, wait, false
		}
	}
}

// takeOrAsk is take for a bucket without returned places and without contention. It returns a negative wait if it
// cannot decide.
func (p *places) takeOrAsk(now time.Duration, n int64) (Turn, time.Duration) {
	line := p.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, -1
	}
	at, booked := line.At(now), p.booked.Load()
	t := line.Next(booked, at, line.Cost(n))
	if t.Place > at {
		return Turn{}, max(1, line.Until(now, t.Place))
	}
	if p.booked.CompareAndSwap(booked, t.Place) {
		return Turn{t}, 0
	}
	p.contended(line, now, n)
	return Turn{}, -1
}

func (p *places) ask(now time.Duration, n int64) time.Duration {
	line := p.line.Load()
	if uint64(n-1) >= uint64(line.Full()) {
		return unlessZero(n)
	}
	at, cost := line.At(now), line.Cost(n)
	// Usually the line alone has enough. The blocks of the cores are read only if not, because the cores write them.
	if !line.Paused(now) && (line.Next(p.booked.Load(), at, cost).Place <= at || p.there(line, at) >= cost) {
		return 0
	}
	return line.Wait(now, p.comes(line, at, cost))
}

// comes returns the place that the line must reach for cost places to be available. The burst may pass some returned
// places until then, so it searches for that place.
func (p *places) comes(line *bucket.Line, at, cost int64) int64 {
	p.pour(line, at)
	place := line.Next(p.booked.Load(), at, cost).Place
	if p.returned() == nil {
		return place
	}
	for low := at; low < place; {
		if mid := low + (place-low)/2; p.there(line, mid) >= cost {
			place = mid
		} else {
			low = mid + 1
		}
	}
	return place
}

// unlessZero returns the wait for a cost that is never met, or 0 for a cost of 0, which is always met.
func unlessZero(n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return bucket.Never
}

// mostLate is how late a queue may wake and still use what came since its first call was entitled to go, although the
// burst is smaller. A queue that wakes late sends at most what came within this time.
const mostLate = 100 * time.Millisecond
