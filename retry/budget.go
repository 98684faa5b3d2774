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

// BudgetConfig bounds retries by a share of the calls that were made lately.
// The zero BudgetConfig allows 10% over 10s and one a second besides.
type BudgetConfig struct {
	Off    bool          // allow every retry
	Share  float64       // retries per first attempt; 0 means 0.1
	Window time.Duration // how long a first attempt counts; 0 means 10s
	Floor  float64       // retries a second allowed besides, for upstreams that are seldom called; 0 means 1

	// All bounds the retries of all processes that share their limits, besides: "100
	// a minute" is never more in any minute, whenever they come; with a Burst, it is
	// that many at once and the rest at the rate. The zero Rate is no bound. The
	// upstream counts it; a Budget knows nothing of others.
	All bucket.Rate
}

// WithDefaults is c with every zero replaced by what it means.
func (c BudgetConfig) WithDefaults() BudgetConfig {
	c.Share = cmp.Or(c.Share, 0.1)
	c.Window = cmp.Or(c.Window, 10*time.Second)
	c.Floor = cmp.Or(c.Floor, 1)
	return c
}

// Validate reports every mistake at once, each with its field, value and reason.
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

// A Budget holds retries to a share of first attempts plus a floor. Whenever
// it grants one, counting that one,
//
//	retries in the last Window <= Share * calls in the last Window + Floor * Window
//
// so that over any stretch of time T retries come to at most
// Share * calls + Floor * (T + Window), the calls of one Window before it
// included. It counts in steps of at most a 32nd of Window and rounds against
// the retry. The zero Budget refuses every retry. It is safe for concurrent use;
// Call is for the path of every call and takes no lock.
type Budget struct {
	off      bool
	window   time.Duration
	calls    *counter.Window
	perCall  int64 // millionths of a retry earned by one call
	unearned int64 // millionths of a retry in every window
	mu       sync.Mutex
	now      time.Duration // the latest instant at which a retry was asked for
	granted  *counter.Window
}

// budgetSteps is how finely the window is divided.
const budgetSteps = 32

// million turns shares into integers, in which 10% of 30 calls is exactly 3.
const million = 1_000_000

// NewBudget returns a Budget to which no call has been noted, or what Validate
// says of c.
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

// Call notes a first attempt at the instant now. It costs about 15 ns.
func (b *Budget) Call(now time.Duration) {
	if b.calls != nil {
		b.calls.Add(now, 1)
	}
}

// CallIn is Call for who has picked a cell of counters already (counter.Pick).
func (b *Budget) CallIn(cell int, now time.Duration) {
	if b.calls != nil {
		b.calls.AddIn(cell, now, 1)
	}
}

// Retry grants one retry if the rule above still holds with it. What the
// attempt ended with does not matter.
func (b *Budget) Retry(now time.Duration, _ *outcome.Outcome) (Receipt, bool) {
	if b.off {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// A caller that was held up on the way to the lock must not reopen a
	// window in which others have spent since.
	b.now = max(b.now, now)
	if b.left(b.now) <= 0 {
		return 0, false
	}
	b.granted.Add(b.now, 1)
	return Receipt(b.now) + 1, true
}

// Unspent takes back a retry that was granted and never made.
func (b *Budget) Unspent(_ time.Duration, paid Receipt) {
	if paid == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted.Add(time.Duration(paid-1), -1)
}

// Success changes nothing: a retry that worked was load all the same.
func (b *Budget) Success(time.Duration, Receipt) {}

// Left is how many retries would be granted at the instant now. A Budget that
// is off has no end of them.
func (b *Budget) Left(now time.Duration) int64 {
	if b.off {
		return math.MaxInt64
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.left(max(b.now, now)), 0)
}

// left counts too few calls rather than too many, and too many retries rather
// than too few.
func (b *Budget) left(now time.Duration) int64 {
	if b.calls == nil {
		return 0
	}
	earned := b.perCall*b.calls.Within(now, b.window) + b.unearned
	return earned/million - b.granted.Covering(now, b.window)
}
