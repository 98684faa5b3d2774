package dynamostore

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A cell is the state of one limit in an item, as an ask finds it and changes it.
// It is settled first, then taken from, then written, and then it observes the answer.
type cell interface {
	// back returns units that stand where the mark says, owe charges units whatever
	// is left.
	back(m fleet.Mark, n int64)
	owe(n int64)

	// left is how many units there are, and take takes some of them.
	left() int64
	take(n int64)

	// write adds to an update what is to become of the limit, and reports what others
	// of this process are to count with until it is answered.
	write(u *update) (ahead int64)

	// heard takes over the answer, which came lag microseconds after the cell was made.
	heard(it item, lag int64)

	// The rest tells of the state, in microseconds from now.
	wait(cost int64) int64
	reset() int64
	mark() fleet.Mark
}

// view is what a cell is made of.
type view struct {
	rule  *fleet.Rule
	at    string // the suffix of its attributes
	item  item
	seen  map[string]sight
	now   instant
	ahead int64
	most  int // slots that may be dropped
	sup   *supply
	first bool // the process has taken nothing of the limit so far, and its bounds of the time are wide
	retry bool // an update of this ask has failed, as others had changed the item
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

// longestDebt is how many full bursts of debt there can be.
const longestDebt = 16

// since is how many microseconds have passed since an instant of our clock, at least
// and at most.
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

// huge stands for all that is larger.
const huge = math.MaxInt64 / 4

// times is a product that stays where it is too large.
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

// micro is a wait as it is told. Clocks may run a little differently until it is over.
func micro(us int64) time.Duration {
	switch {
	case us <= 0:
		return 0
	case us > math.MaxInt64/2000:
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}

// sure is a wait that clocks which drift do not make too short.
func (v *view) sure(us int64) int64 {
	if us <= 0 || v.now.lo == v.now.hi || us > huge {
		return us
	}
	return us + us/(500_000/drift) + 1
}

const never = math.MaxInt64
