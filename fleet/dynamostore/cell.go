package dynamostore

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A cell is the state of one limit in an item during an ask. The plan first applies settlements to it, then takes
// units, writes the update, and passes the response to heard.
type cell interface {
	// back returns the units that the mark identifies. owe charges units even if none remain.
	back(m fleet.Mark, n int64)
	owe(n int64)

	// left returns the number of available units, and take takes n of them.
	left() int64
	take(n int64)

	// write adds the changes of the limit to an update. It returns how much other asks of this process must count as
	// taken until the response.
	write(u *update) (ahead int64)

	// heard adopts the response, which arrived lag microseconds after the cell was opened.
	heard(it item, lag int64)

	// wait returns the microseconds until cost units are available, and reset those until the limit is full.
	wait(cost int64) int64
	reset() int64
	mark() fleet.Mark
}

// A view is the input of a cell.
type view struct {
	rule  *fleet.Rule
	at    string // the suffix of its attributes
	item  item
	seen  map[string]sight
	now   instant
	ahead int64
	most  int // the most slots that an update may drop
	sup   *supply
	first bool // the process has not yet used the limit, and its bounds of the time are wide
	retry bool // an update of this ask has failed, because other processes had changed the item
}

func (v *view) open(w *limit.Windows, k *fleet.Claim) cell {
	switch v.rule.Shape {
	case limit.Bucket:
		return openBucket(v)
	case limit.Rolling:
		return openRolling(v)
	}
	return openCalendar(v, w, k)
}

// longestDebt is the maximum debt, in full bursts.
const longestDebt = 16

// atLeast and atMost return bounds of the microseconds since an instant of the process's clock, in nanoseconds.
func (v *view) atLeast(since int64) int64 {
	d := v.now.mono - since
	return (d - drifted(d)) / 1000
}

func (v *view) atMost(since int64) int64 {
	if since == longAgo {
		return huge
	}
	d := v.now.mono - since
	return (d+drifted(d))/1000 + 1
}

// huge also represents all larger numbers.
const huge = math.MaxInt64 / 4

// times returns the product, limited to huge.
func times(a, b int64) int64 {
	if a < 0 {
		return -times(-a, b)
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > huge {
		return huge
	}
	return int64(lo)
}

// micro converts microseconds to a Duration: 0 if they are negative, and bucket.Never if they are too many.
func micro(us int64) time.Duration {
	switch {
	case us <= 0:
		return 0
	case us > math.MaxInt64/2000:
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}

// sure returns a wait that is long enough even if clocks drift.
func (v *view) sure(us int64) int64 {
	if us <= 0 || v.now.lo == v.now.hi || us > huge {
		return us
	}
	return us + us/(500_000/drift) + 1
}

const never = math.MaxInt64
