package retry

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// QuotaConfig is the retry quota of the AWS SDKs: a number of tokens that retries use and successes refill. The zero QuotaConfig
// has the constants that the SDKs use since 2026-11-10 (aws-sdk-go-v2 v1.48.0).
type QuotaConfig struct {
	Capacity int64 // initial and maximum number of tokens; 0 means 500
	Retry    int64 // price of a retry; 0 means 14
	Throttle int64 // price after a throttled attempt; 0 means 5
	Timeout  int64 // price after an attempt with one of TimeoutCodes; 0 means the same as for other attempts
	Success  int64 // tokens earned by a first attempt that succeeds; 0 means 1

	// TimeoutCodes are the codes of attempts that timed out; empty means RequestTimeout, RequestTimeoutException and timeout.
	TimeoutCodes []string
}

var quotas = map[string]QuotaConfig{
	// The SDKs' constants before 2026-11-10. Both prices were 5.
	"aws":      {Capacity: 500, Retry: 5, Throttle: 5, Timeout: 10, Success: 1},
	"aws-2026": {Capacity: 500, Retry: 14, Throttle: 5, Success: 1},

	// As many consecutive retries as the older SDKs made. Successful calls earn more, so that an upstream that fails half of its
	// calls is retried indefinitely.
	"aws-patient": {Capacity: 500, Retry: 5, Throttle: 5, Success: 3},

	// The SDKs of language models have no quota. This one runs out in an outage, and rarely otherwise.
	"llm": {Capacity: 500, Retry: 5, Throttle: 5, Success: 5},
}

// QuotaSchedule returns the quota for the Schedule of that name. ok is false if that Schedule has no quota.
func QuotaSchedule(name string) (QuotaConfig, bool) {
	c, ok := quotas[name]
	return c, ok
}

// QuotaSchedules returns the names that QuotaSchedule accepts, sorted.
func QuotaSchedules() []string { return slices.Sorted(maps.Keys(quotas)) }

// WithDefaults returns c with all defaults.
func (c QuotaConfig) WithDefaults() QuotaConfig {
	c.Capacity = cmp.Or(c.Capacity, 500)
	c.Retry = cmp.Or(c.Retry, 14)
	c.Throttle = cmp.Or(c.Throttle, 5)
	c.Success = cmp.Or(c.Success, 1)
	if len(c.TimeoutCodes) == 0 {
		c.TimeoutCodes = []string{"RequestTimeout", "RequestTimeoutException", "timeout"}
	}
	return c
}

// Validate returns all errors in c, each with its field, value and reason.
func (c QuotaConfig) Validate() error {
	var m mistakes
	for _, f := range []struct {
		field string
		value int64
	}{{"capacity", c.Capacity}, {"retry", c.Retry}, {"throttle", c.Throttle}, {"timeout", c.Timeout}, {"success", c.Success}} {
		m.when(f.value < 0, "%s %d: must not be negative", f.field, f.value)
		m.when(f.value > 1e12, "%s %d: must be at most 1e12", f.field, f.value)
	}
	d := c.WithDefaults()
	price := max(d.Retry, d.Throttle, d.Timeout)
	m.when(d.Capacity < price, "capacity %d: must not be below the price of one retry, %d", d.Capacity, price)
	m.codes("timeout_codes", c.TimeoutCodes)
	return errors.Join(m...)
}

// A Quota is the state for a QuotaConfig. A successful retry gets its price back, and every successful first attempt earns
// tokens. With the constants of 2026, an upstream that is down gets 35 retries, and then one for every 14 successes. The zero
// Quota refuses every retry. A Quota is one atomic word, and safe for concurrent use.
type Quota struct {
	c      QuotaConfig
	tokens atomic.Int64
}

// NewQuota returns a full Quota, or the error of Validate.
func NewQuota(c QuotaConfig) (*Quota, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	q := &Quota{c: c.WithDefaults()}
	q.tokens.Store(q.c.Capacity)
	return q, nil
}

// Call does nothing: only successes earn tokens.
func (q *Quota) Call(time.Duration) {}

// Retry takes the price of a retry after o, if there are enough tokens.
func (q *Quota) Retry(_ time.Duration, o *outcome.Outcome) (Receipt, bool) {
	price := max(q.price(o), 1)
	for {
		have := q.tokens.Load()
		if have < price {
			return 0, false
		}
		if q.tokens.CompareAndSwap(have, have-price) {
			return Receipt(price), true
		}
	}
}

// Unspent returns the price of a retry that was not made.
func (q *Quota) Unspent(_ time.Duration, paid Receipt) { q.put(int64(paid)) }

// Success returns the price of the attempt, or adds the tokens that a first attempt earns.
func (q *Quota) Success(_ time.Duration, paid Receipt) {
	q.put(cmp.Or(int64(paid), q.c.Success))
}

// Left returns the number of tokens.
func (q *Quota) Left(time.Duration) int64 { return q.tokens.Load() }

// price returns the configured price of a retry after o, in tokens. The minimum of 1 is applied elsewhere.
func (q *Quota) price(o *outcome.Outcome) int64 {
	switch {
	case o.Class == outcome.Throttled:
		return q.c.Throttle
	case q.c.Timeout > 0 && slices.Contains(q.c.TimeoutCodes, o.Code):
		return q.c.Timeout
	}
	return q.c.Retry
}

// put adds tokens up to the capacity. A full quota, the usual case, is only read, so that successful calls do not contend for the
// word.
func (q *Quota) put(n int64) {
	for {
		have := q.tokens.Load()
		next := min(have+n, q.c.Capacity)
		if next == have || q.tokens.CompareAndSwap(have, next) {
			return
		}
	}
}
