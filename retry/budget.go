package retry

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// BudgetConfig bounds retries by a share of recent calls. The zero BudgetConfig allows 10% of the calls within 10s, and one a
// second in addition.
type BudgetConfig struct {
	Off    bool          // allow every retry
	Share  float64       // retries per first attempt; 0 means 0.1
	Window time.Duration // how long a first attempt counts; 0 means 10s
	Floor  float64       // additional retries per second, for upstreams with few calls; 0 means 1

	// All additionally bounds the retries of all processes that share their limits. With "100 a minute", no minute has more,
	// whenever the retries happen. With a Burst, that many may happen at the same time and the rest at the rate. The zero Rate is
	// no bound. The upstream counts it: a Budget does not know other processes.
	All bucket.Rate
}

// WithDefaults returns c with all defaults.
func (c BudgetConfig) WithDefaults() BudgetConfig {
	c.Share = cmp.Or(c.Share, 0.1)
	c.Window = cmp.Or(c.Window, 10*time.Second)
	c.Floor = cmp.Or(c.Floor, 1)
	return c
}

// Validate returns all errors in c, each with its field, value and reason.
func (c BudgetConfig) Validate() error {
	var m mistakes
	c = c.WithDefaults()
	m.when(!(c.Share >= 1e-6 && c.Share <= 100), "share %v: must be from 0.000001 to 100", c.Share)
	m.when(c.Window < 100*time.Millisecond || c.Window > 24*time.Hour, "window %v: must be from 100ms to 24h", c.Window)
	m.when(!(c.Floor >= 1e-6 && c.Floor <= 1e6), "floor %v: must be from 0.000001 to 1000000 a second", c.Floor)
	if c.All != (bucket.Rate{}) {
		if err := c.All.Validate(); err != nil {
			m = append(m, fmt.Errorf("all: %w", err))
		}
	}
	return errors.Join(m...)
}

// A Budget bounds retries to a share of first attempts plus a floor. After every granted retry,
//
//	retries in the last Window <= Share * calls in the last Window + Floor * Window
//
// so that the retries in any time T are at most Share * calls + Floor * (T + Window), where calls includes the Window before. It
// counts in steps of at most a 32nd of Window, and rounds toward fewer retries. The zero Budget refuses every retry. It is safe
// for concurrent use. Call takes no lock, because every call needs it.
type Budget struct {
	off      bool
	window   time.Duration
	calls    *counter.Window
	perCall  int64 // millionths of a retry earned by one call
	unearned int64 // millionths of a retry in every window
	mu       sync.Mutex
	now      time.Duration // the latest instant of a request for a retry
	granted  *counter.Window
}

const budgetSteps = 32

// million converts shares to integers, so that 10% of 30 calls is exactly 3.
const million = 1_000_000

// NewBudget returns a Budget without calls, or the error of Validate.
func NewBudget(c BudgetConfig) (*Budget, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	if c.Off {
		return &Budget{off: true}, nil
	}
	return &Budget{
		window:   c.Window,
		calls:    counter.NewWindow(c.Window, budgetSteps),
		perCall:  int64(math.Round(c.Share * million)),
		unearned: int64(math.Round(c.Floor * c.Window.Seconds() * million)),
		granted:  counter.SingleWindow(c.Window, budgetSteps),
	}, nil
}

// Call counts a first attempt at the instant now. It costs about 15 ns.
func (b *Budget) Call(now time.Duration) {
	if b.calls != nil {
		b.calls.Add(now, 1)
	}
}

// CallIn is Call for a caller that has already picked a cell of counters (counter.Pick).
func (b *Budget) CallIn(cell int, now time.Duration) {
	if b.calls != nil {
		b.calls.AddIn(cell, now, 1)
	}
}

// Retry grants one retry if the inequality above still holds with it. It ignores the outcome of the attempt.
func (b *Budget) Retry(now time.Duration, _ *outcome.Outcome) (Receipt, bool) {
	if b.off {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// A caller that waited for the lock must not reopen a window that other callers have used since.
	b.now = max(b.now, now)
	if b.left(b.now) <= 0 {
		return 0, false
	}
	b.granted.Add(b.now, 1)
	return Receipt(b.now) + 1, true
}

// Unspent returns a retry that was granted and not made.
func (b *Budget) Unspent(_ time.Duration, paid Receipt) {
	if paid == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted.Add(time.Duration(paid-1), -1)
}

// Success does nothing: a successful retry is load as well.
func (b *Budget) Success(time.Duration, Receipt) {}

// Left returns how many retries would be granted at the instant now. A Budget that is off has no bound.
func (b *Budget) Left(now time.Duration) int64 {
	if b.off {
		return math.MaxInt64
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.left(max(b.now, now)), 0)
}

// left rounds calls down and retries up.
func (b *Budget) left(now time.Duration) int64 {
	if b.calls == nil {
		return 0
	}
	earned := b.perCall*b.calls.Within(now, b.window) + b.unearned
	return earned/million - b.granted.Covering(now, b.window)
}
