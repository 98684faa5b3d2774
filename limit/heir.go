package limit

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// An heir is the bucket that has taken the place of another whose axis could not hold the
// new rate. Those who wait have their turns on its axis from then on: they feel the new
// rate, and nobody else has been given their places.
type heir struct {
	to         *Limiter
	from, base int64 // the same place, on the axis of the old bucket and of the new one
	was, unit  int64 // the places of a unit there
}

// inherit has a bucket that nobody uses yet take the place of one that has been closed, of
// which is left what close has said.
func (m *Limiter) inherit(now time.Duration, old, left *Limiter) {
	was, is := left.line.Load(), m.line.Load()
	h := &heir{to: m, from: was.At(now), base: is.At(now), was: was.Unit(), unit: is.Unit()}
	if booked := left.booked.Load(); booked != retired && booked > h.from {
		m.booked.Store(h.place(booked))
	}
	old.grow().heir.Store(h)
}

// place is where a place of the old axis is on the new one, rounded down.
func (h *heir) place(old int64) int64 {
	d := old - h.from
	back := d < 0
	if back {
		d = -d
	}
	hi, lo := bits.Mul64(uint64(d), uint64(h.unit))
	if hi >= uint64(h.was) {
		hi, lo = 0, math.MaxInt64 // as far as it goes
	}
	q, rest := bits.Div64(hi, lo, uint64(h.was))
	switch {
	case q > math.MaxInt64/4 && back:
		return -bucket.End
	case q > math.MaxInt64/4:
		return bucket.End
	case back && rest > 0:
		return h.base - int64(q) - 1
	case back:
		return h.base - int64(q)
	}
	return min(bucket.End, h.base+int64(q))
}

func (h *heir) turn(t Turn) Turn {
	to := Turn{bucket.Turn{Place: h.place(t.Place), Low: h.place(t.Low)}}
	if to.Cost = to.Place - to.Low; !t.Whole() {
		to.Cost = min(to.Cost, t.Cost/h.was*h.unit)
	}
	return to
}

// heir is nil unless another bucket has taken the place of this one.
func (m *Limiter) heir() *heir {
	if x := m.more.Load(); x != nil {
		return x.heir.Load()
	}
	return nil
}
