package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// places is a bucket of this process.
//
// Its state is what it has given away, on an axis of supply: places stand one behind the other,
// and a timetable says at which instant each of them is there. A place is given to one call only,
// when it is there and the burst has not passed it; that is the whole proof that no window of
// length t sees more than burst + rate*t. The first of a line that wakes late may count the burst from up to
// mostLate ago (trySince): then what came due meanwhile goes at once.
//
// The timetable (line) changes seldom and is read by all; booked is the last place given
// away and is the only word that a decision writes, but for what came back (see kept) and
// while several cores take from it at once (see blocks).
type places struct {
	line   atomic.Pointer[bucket.Line]
	booked atomic.Int64
	more   atomic.Pointer[more] // nil for most
}

// A Turn is what Take gives, for Back. The zero Turn is that of nothing.
type Turn struct{ bucket.Turn }

// evicted marks a booked word whose limiter has been evicted: no place behind it
// is ever reached.
const evicted = bucket.End

const lowest = math.MinInt64 / 2 // no place is

// try is the path of nearly every decision: one load, one compare-and-swap. A cost of 0 is always
// met, one below 0 or above the burst never. A limiter of another shape answers it as well.
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

// trySince is try for who could have gone since an instant: the burst is counted from then on. Places
// that came back are worth no more for that.
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

// tryMore is try for a limiter that has, or may have, more.
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

// gather takes cost places, first from those that came back and the rest from
// the line. If others are faster it puts back what it has got. A turn put together in this way
// may have gaps: it is not known where its places are, so each is worth what the lowest is.
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

// there is how many places could be taken when the line has reached at.
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

// takeOrAsk is take of a bucket of which nothing came back, and that no other core writes just then: below 0 if
// it is not known.
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
	// The line alone has enough, as a rule. What cores hold in blocks is only looked at if not: it is theirs to write.
	if !line.Paused(now) && (line.Next(p.booked.Load(), at, cost).Place <= at || p.there(line, at) >= cost) {
		return 0
	}
	return line.Wait(now, p.comes(line, at, cost))
}

// comes is the place that the line must reach for so many to be there. Some of what came
// back may have been passed by then, so that it is looked for.
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

// unlessZero is the wait for a cost that is never met, but for 0, which always is.
func unlessZero(n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return bucket.Never
}

// mostLate is how late the first of a line may ask, and still take what came since it was
// entitled to, although its burst is smaller. A line that wakes late sends no more at once
// than came within it.
const mostLate = 100 * time.Millisecond
