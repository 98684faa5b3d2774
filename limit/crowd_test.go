package limit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// crowdOf gives a limiter its crowd, with so many cells, on for ever.
func crowdOf(m *Limiter, cells int) *crowd {
	c := &crowd{cells: make([]cell, max(cells, counter.Cells))}
	c.until.Store(int64(bucket.Never))
	m.grow().crowd.Store(c)
	return c
}

// onCell is what take does for a caller on the core that the cell belongs to.
func onCell(m *Limiter, c *crowd, i int, now time.Duration) bool {
	line := m.line.Load()
	if line.Paused(now) {
		return false
	}
	at, unit := line.At(now), line.Unit()
	if _, ok := c.cells[i].take(line, at, unit); ok {
		return true
	}
	_, ok := c.fill(&c.cells[i], m, line, at, unit)
	return ok
}

// Units in cells count and can be had like all others: a refusal means that there
// were not enough anywhere.
func TestCellsNeitherHideNorMultiplyUnits(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := bucket.Rate{Amount: 1 + upTo(rng, 1e9), Per: time.Second, Burst: plenty * (1 + rng.Int64N(4))}
		h, err := newHistory(rng, limitOf(r))
		if err != nil {
			return err
		}
		c := crowdOf(h.m, 1+rng.IntN(6))
		for step := range 120 {
			if err := crowdStep(h, c); err != nil {
				return fmt.Errorf("%v, step %d: %w", r, step, err)
			}
		}
		if err := h.settle(); err != nil {
			return err
		}
		return h.judge()
	})
}

func crowdStep(h *history, c *crowd) error {
	gap := int64(time.Second)/h.l.Amount*h.rng.Int64N(40) + h.rng.Int64N(2)
	if h.rng.IntN(60) == 0 {
		gap = int64(time.Second) / h.l.Amount * h.l.Full()
	}
	if err := h.advance(h.now + time.Duration(gap)); err != nil {
		return err
	}
	switch h.rng.IntN(20) {
	case 0:
		return h.try(1 + h.rng.Int64N(h.l.Full()))
	case 1:
		return h.take(1+h.rng.Int64N(40), time.Duration(gap))
	case 2:
		h.back()
		return h.spareIsBooked()
	case 3:
		h.pause(time.Duration(gap))
		return nil
	case 4:
		h.pace()
		return nil
	case 5:
		return h.set()
	}
	for range 1 + h.rng.IntN(2*block) {
		before := h.m.Look(h.now).Left
		if !onCell(h.m, c, h.rng.IntN(len(c.cells)), h.now) {
			return h.try(1)
		}
		// What the burst is about to pass is not put into cells.
		passing := 2 + h.l.Amount/int64(time.Second/crowdTime)
		if after := h.m.Look(h.now).Left; after >= before || after < before-passing {
			return fmt.Errorf("one was taken of %d, and %d are left", before, after)
		}
		if err := h.use(&holder{n: 1, returned: true}); err != nil {
			return err
		}
	}
	return nil
}

func TestTheLastUnitsCanBeHadOneByOne(t *testing.T) {
	for left := int64(1); left <= 2*block; left++ {
		m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 4 * plenty}))
		c := crowdOf(m, 4)
		for i := 0; m.Look(0).Left > left; i++ {
			if !onCell(m, c, i%4, 0) && !m.Try(0, 1) {
				t.Fatalf("refused with %d left", m.Look(0).Left)
			}
		}
		var got int64
		for m.Try(0, 1) {
			got++
		}
		if got != left {
			t.Errorf("of %d left units %d could be had", left, got)
		}
	}
}

func TestASmallBurstIsAllThereWithACrowd(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 10}))
	crowdOf(m, 2)
	for i := range 11 {
		if got := m.Try(0, 1); got != (i < 10) {
			t.Errorf("try %d of 10: %v", i+1, got)
		}
	}
}

// While a cell is being filled nobody may take from it, whatever it held before;
// before the first burst is over its places are below 0.
func TestACellThatIsBeingFilledGivesNothing(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10000}))
	line := m.line.Load()
	var own cell
	own.high.Store(-2 * line.Unit())
	own.low.Store(filling)
	if turn, ok := own.take(line, line.At(0), line.Unit()); ok {
		t.Errorf("gave %+v", turn)
	}
	c := crowdOf(m, 1)
	c.cells[0].low.Store(filling)
	if held := c.held(line, line.At(0)); held != 0 {
		t.Errorf("holds %d places", held)
	}
}

// A block is only taken into an empty cell: what the cell still holds would be
// lost.
func TestFillingKeepsWhatACellHolds(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 4 * plenty}))
	c := crowdOf(m, 1)
	line := m.line.Load()
	for range 10 {
		c.fill(&c.cells[0], m, line, line.At(0), line.Unit())
	}
	if got, want := m.Look(0).Left, 4*plenty-2; got < want {
		t.Errorf("%d left, want %d", got, want)
	}
}

// With real cores, real time and a clock that is read before the decision, so
// that some decide with an old reading.
func TestManyCoresNeverGoOverTheLimit(t *testing.T) {
	for _, r := range []bucket.Rate{
		{Amount: 100_000, Per: time.Second, Burst: 100},
		{Amount: 1_000_000, Per: time.Second, Burst: 10_000},
		{Amount: 20_000_000, Per: time.Second, Burst: 1_000_000},
	} {
		start := clock.System.Now()
		m, err := New(start, limitOf(r))
		if err != nil {
			t.Fatal(err)
		}
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() { got.Add(spin(m, start+100*time.Millisecond, i)) })
		}
		wg.Wait()
		took := clock.System.Now() - start
		if most := r.Burst + int64(r.PerSecond()*took.Seconds()) + 1; got.Load() > most {
			t.Errorf("%v: %d went in %v, want at most %d", r, got.Load(), took, most)
		}
		if crowd := m.crowd() != nil; got.Load() == 0 {
			t.Errorf("%v: nothing went, crowd %v", r, crowd)
		}
	}
}

// spin takes and gives back until the instant, and says how much it kept.
func spin(m *Limiter, until time.Duration, i int) (kept int64) {
	for k := i; ; k++ {
		now := clock.System.Now()
		if now >= until {
			return kept
		}
		n := int64(1)
		if k%64 == 0 {
			n = 3
		}
		t, _, ok := m.Take(now, n, 0)
		switch {
		case !ok:
		case k%16 == 0:
			m.Back(now, t, bucket.All)
		default:
			kept += n
		}
	}
}

// Callers on all cores take while burst, rate and pauses change: every unit that
// goes was booked once.
func TestManyCoresShareWhatIsThere(t *testing.T) {
	const burst = 50_000
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Minute, Burst: burst}))
	crowdOf(m, 4)
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := i; ; k++ {
				n := int64(1 + k%3)
				turn, _, ok := m.Take(0, n, 0)
				switch {
				case !ok && n == 1:
					return
				case ok && k%5 == 0:
					m.Back(0, turn, bucket.All)
				case ok:
					got.Add(n)
				}
			}
		})
	}
	wg.Wait()
	for m.Try(0, 1) { // what came back after the last refusal
		got.Add(1)
	}
	if got.Load() > burst || got.Load() < burst-1 {
		t.Errorf("%d went, want %d", got.Load(), burst)
	}
}
