package limit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// blocksOf gives a limiter blocks that are always taken.
func blocksOf(m *Limiter) *blocks {
	b := newBlocks()
	b.until.Store(int64(bucket.Never))
	m.bucket.grow().blocks.Store(b)
	return b
}

// notFull returns a limiter with blocks that has one unit less than its burst, so that the burst passes nothing.
func notFull(t *testing.T, per time.Duration, burst int64) (*Limiter, *blocks) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: per, Burst: burst + 1}))
	m.Try(0, 1)
	return m, blocksOf(m)
}

// onCore does what take does for a caller on this core.
func onCore(m *Limiter, i int, now time.Duration) (Turn, bool) {
	line, b := m.bucket.line.Load(), m.bucket.blocks()
	if line.Paused(now) {
		return Turn{}, false
	}
	at := line.At(now)
	if t, ok := b.cores[i].take(line, at); ok {
		return t, true
	}
	return b.fill(&b.cores[i], &m.bucket, line, at)
}

// Units in blocks are counted and available like all others. A refusal means that all places together had too few,
// and a wait that they will not have enough earlier.
func TestBlocksNeitherHideNorMultiplyUnits(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	cases(t, 1000, func(rng *rand.Rand) error {
		r := bucket.Rate{Amount: 1 + upTo(rng, 1e9), Per: time.Second, Burst: blocksFrom * (1 + rng.Int64N(4))}
		h, err := newHistory(rng, limitOf(r))
		if err != nil {
			return err
		}
		blocksOf(h.m)
		for step := range 120 {
			if err := blockStep(h); err != nil {
				return fmt.Errorf("%v, step %d: %w", r, step, err)
			}
		}
		if err := h.settle(); err != nil {
			return err
		}
		return h.judge()
	})
}

func blockStep(h *history) error {
	unit := max(1, int64(time.Second)/h.l.Amount)
	gap := unit*h.rng.Int64N(40) + h.rng.Int64N(2)
	if h.rng.IntN(60) == 0 {
		gap = unit * h.l.Full()
	}
	if err := h.advance(h.now + time.Duration(gap)); err != nil {
		return err
	}
	switch h.rng.IntN(20) {
	case 0:
		return h.try(1 + h.rng.Int64N(h.l.Full()))
	case 1:
		return h.take(1 + h.rng.Int64N(h.l.Full()))
	case 2:
		h.back()
		return h.returnedIsBooked()
	case 3:
		h.pause(time.Duration(gap))
		return nil
	case 4:
		h.pace()
		return nil
	case 5:
		return h.set()
	case 6:
		return h.after()
	}
	for range 1 + h.rng.IntN(2*blockUnits) {
		if err := h.takeOnCore(); err != nil {
			return err
		}
	}
	return nil
}

// takeOnCore takes a unit on one core, or like any other call if the core gets none.
func (h *history) takeOnCore() error {
	before := h.m.Look(h.now)
	turn, ok := onCore(h.m, h.rng.IntN(len(h.m.bucket.blocks().cores)), h.now)
	if !ok {
		return h.try(1)
	}
	passing := 2 + h.l.Amount/int64(time.Second/spent) // not taken into blocks
	if after := h.m.Look(h.now); after.Left >= before.Left || after.Left < before.Left-passing {
		return fmt.Errorf("one was taken of %d, and %d are left", before.Left, after.Left)
	}
	return h.use(&holder{turn: turn, n: 1})
}

// after checks that the predicted wait of a call is right if all calls before it proceed.
func (h *history) after() error {
	if h.m.bucket.returned() != nil || len(h.waiting) > 0 || h.m.bucket.line.Load().Paused(h.now) {
		return nil
	}
	full := h.m.Look(h.now).Full
	ahead, n := h.rng.Int64N(full), 1+h.rng.Int64N(full)
	told := h.m.After(h.now, ahead, n)
	left := h.m.Look(h.now).Left
	if wait := h.m.After(h.now, ahead, n); wait != told || (told == 0) != (left >= ahead+n) {
		return fmt.Errorf("behind %d with %d left, %d wait %v, and then %v", ahead, left, n, told, wait)
	}
	return nil
}

func TestTheLastUnitsCanBeHadOneByOne(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for left := int64(1); left <= 2*blockUnits; left++ {
		m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 4 * blocksFrom}))
		blocksOf(m)
		for i := 0; m.Look(0).Left > left; i++ {
			if _, ok := onCore(m, i%4, 0); !ok && !m.Try(0, 1) {
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

// A call that costs more than any single block holds can use all blocks together, and a predicted wait counts them.
func TestWhatBlocksHoldCanBeHadTogether(t *testing.T) {
	m, _ := notFull(t, time.Second, 2*blocksFrom)
	var gone int64
	for i := range 4 {
		if _, ok := onCore(m, i, 0); ok {
			gone++
		}
	}
	left := 2*blocksFrom - gone
	if wait := m.Ask(0, left+2); gone != 4 || wait != 2*time.Second {
		t.Errorf("with %d left, 2 more wait %v", left, wait)
	}
	if wait := m.After(0, left, 1); wait != time.Second {
		t.Errorf("behind all that is left one waits %v", wait)
	}
	if !m.Room(0, 1, time.Second, left) || m.Room(0, 2, time.Second, left) {
		t.Error("room is for one beside all that is left, a second later")
	}
	if !m.Try(0, left) {
		t.Errorf("%d are left, and cannot be had", left)
	}
}

// A debt takes units from blocks: no call proceeds while units are owed.
func TestADebtTakesWhatBlocksHold(t *testing.T) {
	m, _ := notFull(t, time.Hour, 2*blocksFrom)
	onCore(m, 0, 0)
	m.Owe(0, 2*blocksFrom)
	if _, ok := onCore(m, 0, 0); ok || m.Try(0, 1) {
		t.Error("one went while units were owed")
	}
	if wait := m.Ask(0, 1); wait != 2*time.Hour {
		t.Errorf("with one owed, one waits %v", wait)
	}
}

// A block that is being filled grants nothing, whatever it held before. Before the end of the first burst, positions
// are below 0.
func TestABlockThatIsBeingFilledGivesNothing(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10000}))
	line, b := m.bucket.line.Load(), blocksOf(m)
	b.last.Store(0)
	b.cores[0].high.Store(-2 * line.Unit())
	b.cores[0].low.Store(filling)
	if turn, ok := b.cores[0].take(line, line.At(0)); ok {
		t.Errorf("gave %+v", turn)
	}
	if left := b.left(line, line.At(0)); left != 0 {
		t.Errorf("holds %d places", left)
	}
	if turn, ok := b.fill(&b.cores[0], &m.bucket, line, line.At(0)); ok {
		t.Errorf("was filled by two: %+v", turn)
	}
	b.cores[0].high.Store(0)
	if turn, ok := b.fill(&b.cores[0], &m.bucket, line, line.At(time.Minute)); ok {
		t.Errorf("was filled by two, later: %+v", turn)
	}
}

// Another block is taken only when the first is used up. Otherwise its remaining units would be lost.
func TestFillingKeepsWhatABlockHolds(t *testing.T) {
	m, b := notFull(t, time.Hour, 4*blocksFrom)
	line := m.bucket.line.Load()
	for range 10 {
		b.fill(&b.cores[0], &m.bucket, line, line.At(0))
	}
	if got, want := m.Look(0).Left, 4*blocksFrom-1; got != want {
		t.Errorf("%d left, want %d", got, want)
	}
}

// A caller that is delayed between reading a block and taking from it gets what it read, or nothing. Positions that
// were returned since are never in a block of the same core again.
func TestABlockOnlyGoesUp(t *testing.T) {
	m, b := notFull(t, time.Hour, 4*blocksFrom)
	var turns []Turn
	for range blockUnits {
		turn, _ := onCore(m, 0, 0)
		turns = append(turns, turn)
	}
	for _, turn := range turns {
		m.Back(0, turn, bucket.All)
	}
	if got := m.Look(0).Left; got != 4*blocksFrom {
		t.Fatalf("all came back, and %d are left", got)
	}
	high := b.cores[0].high.Load()
	onCore(m, 0, 0)
	if low := b.cores[0].low.Load(); low < high {
		t.Errorf("the block begins at %d, and was at %d", low, high)
	}
}

// A full burst is available, except for the units that it passes while a core uses a block.
func TestBlocksLeaveLittleOfAFullBurst(t *testing.T) {
	for _, r := range []bucket.Rate{{Amount: 100_000, Per: time.Second, Burst: 10_000}, {Amount: 1_000_000, Per: time.Second, Burst: 1 << 20}} {
		m := mustNew(t, limitOf(r))
		blocksOf(m)
		var got int64
		for i := 0; ; i++ {
			if _, ok := onCore(m, i%2, 0); !ok && !m.Try(0, 1) {
				break
			}
			got++
		}
		if passing := 1 + r.Amount/int64(time.Second/spent); got < r.Burst-passing || got > r.Burst {
			t.Errorf("%v: %d of a full burst could be had", r, got)
		}
	}
}

func TestASmallBurstHasNoBlocks(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 10}))
	m.bucket.contended(m.bucket.line.Load(), 0, 1)
	if m.bucket.blocks() != nil {
		t.Error("it has blocks")
	}
	blocksOf(m) // left from a time when the burst was larger
	for i := range 11 {
		if _, ok := onCore(m, i%2, 0); ok {
			t.Error("a block was taken")
		}
		if got := m.Try(0, 1); got != (i < 10) {
			t.Errorf("try %d of 10: %v", i+1, got)
		}
	}
}

// Blocks are taken while cores collide, and for a moment afterwards.
func TestBlocksEndWhenCoresDoNotMeet(t *testing.T) {
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 4 * blocksFrom}))
	m.bucket.contended(m.bucket.line.Load(), 0, 1)
	b := m.bucket.blocks()
	if b == nil || !b.on(0) || b.on(together) {
		t.Fatalf("blocks: %v", b)
	}
	m.Try(together, 1)
	if last := b.last.Load(); last != lowest {
		t.Errorf("a block was taken up to %d", last)
	}
	m.bucket.contended(m.bucket.line.Load(), together, 1)
	m.Try(together, 1)
	if last := b.last.Load(); last == lowest {
		t.Error("no block was taken")
	}
}

// However cores collide, no call is refused while there is a unit for each call.
func TestNobodyIsRefusedWhileThereIsAUnitForEach(t *testing.T) {
	burst := blocksFrom + 5*blockUnits + 256
	burst -= burst % 64
	for range 2000 {
		m, _ := notFull(t, time.Hour, burst)
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range burst / 64 {
					if !m.Try(0, 1) {
						refused.Add(1)
					}
				}
			})
		}
		if wg.Wait(); refused.Load() > 0 {
			t.Fatalf("%d were refused, and a unit was there for each", refused.Load())
		}
	}
}

// A refusal waits while another goroutine changes a block, because the units in it may be available.
func TestARefusalWaitsForABlockThatIsBeingFilled(t *testing.T) {
	m, b := notFull(t, time.Hour, 2*blocksFrom)
	line := m.bucket.line.Load()
	own, at := &b.cores[0], line.At(0)
	if _, ok := b.fill(own, &m.bucket, line, at); !ok {
		t.Fatal("no block was taken")
	}
	low := own.low.Swap(filling)
	if !own.pour(&m.bucket, line, at) {
		t.Error("it is passed over")
	}
	own.low.Store(low)
	if own.pour(&m.bucket, line, at) {
		t.Error("nobody is at it, and it is waited for")
	}
	if got := m.bucket.grow().returned.left(at, line.Low(at)); got != (blockUnits-1)*line.Unit() {
		t.Errorf("%d places have come out of it, want those of %d units", got, blockUnits-1)
	}
}

// Look returns the same with and without a block.
func TestALookIsTheSameWithABlockOut(t *testing.T) {
	plain, _ := notFull(t, time.Hour, 4*blocksFrom)
	plain.bucket.more.Load().blocks.Store(nil)
	m, b := notFull(t, time.Hour, 4*blocksFrom)
	plain.Try(0, 1)
	line := m.bucket.line.Load()
	b.fill(&b.cores[0], &m.bucket, line, line.At(0))
	if want, got := plain.Look(0), m.Look(0); got != want {
		t.Errorf("%+v, and without a block %+v", got, want)
	}
}
