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

// QuotaConfig is the retry quota of the AWS SDKs: a purse of tokens that
// retries empty and successes fill. The zero QuotaConfig has the constants that
// the SDKs use since 2026-11-10 (aws-sdk-go-v2 v1.48.0).
type QuotaConfig struct {
	Capacity int64 // tokens at the start, and at most; 0 means 500
	Retry    int64 // price of a retry; 0 means 14
	Throttle int64 // price after a throttled attempt; 0 means 5
	Timeout  int64 // price after an attempt with one of TimeoutCodes; 0 means as any other
	Success  int64 // earned by a first attempt that succeeds; 0 means 1

	// TimeoutCodes are the codes of attempts that timed out; none means
	// RequestTimeout, RequestTimeoutException and timeout.
	TimeoutCodes []string
}

var quotas = map[string]QuotaConfig{
	// What the SDKs had before. Both prices are 5: they made no difference.
	"aws":      {Capacity: 500, Retry: 5, Throttle: 5, Timeout: 10, Success: 1},
	"aws-2026": {Capacity: 500, Retry: 14, Throttle: 5, Success: 1},

	// As many retries in a row as the older SDKs made. Calls that succeed earn more, so that
	// an upstream of which half fails is borne for as long as that lasts.
	"aws-patient": {Capacity: 500, Retry: 5, Throttle: 5, Success: 3},

	// The SDKs of language models have no quota at all: this one ends in an outage, and
	// hardly before.
	"llm": {Capacity: 500, Retry: 5, Throttle: 5, Success: 5},
}

// QuotaSchedule is the quota that belongs to the Schedule of that name, and
// false if it has none.
func QuotaSchedule(name string) (QuotaConfig, bool) {
	c, ok := quotas[name]
	return c, ok
}

// QuotaSchedules lists the names that QuotaSchedule knows, sorted.
func QuotaSchedules() []string { return slices.Sorted(maps.Keys(quotas)) }

// WithDefaults is c with every zero replaced by what it means.
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

// Validate reports every mistake at once, each with its field, value and reason.
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
	m.when(d.Capacity < price, "capacity %d: must not be under the price of one retry, %d", d.Capacity, price)
	m.codes("timeout_codes", c.TimeoutCodes)
	return errors.Join(m...)
}

// A Quota is a QuotaConfig in use. A retry that succeeds gets its price back,
// and every first attempt that succeeds earns a little: with the constants of
// 2026 an upstream that is down gets 35 retries, and then one for every 14
// successes. The zero Quota refuses every retry. It is one atomic word, and safe
// for concurrent use.
type Quota struct {
	c      QuotaConfig
	tokens atomic.Int64
}

// NewQuota returns a full Quota, or what Validate says of c.
func NewQuota(c QuotaConfig) (*Quota, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	q := &Quota{c: c.WithDefaults()}
	q.tokens.Store(q.c.Capacity)
	return q, nil
}

// Call changes nothing: what earns is success.
func (q *Quota) Call(time.Duration) {}

// Retry takes the price of a retry after o, if there are tokens for it.
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

// Unspent puts back the price of a retry that was not made.
func (q *Quota) Unspent(_ time.Duration, paid Receipt) { q.put(int64(paid)) }

// Success puts back what the attempt cost, or what a first attempt earns.
func (q *Quota) Success(_ time.Duration, paid Receipt) {
	q.put(cmp.Or(int64(paid), q.c.Success))
}

// Left is how many tokens there are.
func (q *Quota) Left(time.Duration) int64 { return q.tokens.Load() }

// price is what a retry after o costs, in tokens, before the least of 1.
func (q *Quota) price(o *outcome.Outcome) int64 {
	switch {
	case o.Class == outcome.Throttled:
		return q.c.Throttle
	case q.c.Timeout > 0 && slices.Contains(q.c.TimeoutCodes, o.Code):
		return q.c.Timeout
	}
	return q.c.Retry
}

// put adds tokens up to the capacity. A full quota, which is the usual one, is
// only read, so that calls that succeed do not fight over the word.
func (q *Quota) put(n int64) {
	for {
		have := q.tokens.Load()
		next := min(have+n, q.c.Capacity)
		if next == have || q.tokens.CompareAndSwap(have, next) {
			return
		}
	}
}
