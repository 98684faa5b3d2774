package retry

import (
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Purse limits retries, so that a failing upstream gets few of them. All calls of an upstream share it. It is safe for
// concurrent use. Instants come from one clock.Clock.
//
// A call uses it as follows:
//
//	purse.Call(now)                      // before the first attempt, once it is allowed
//	paid, ok := purse.Retry(now, o)      // an attempt ended with o; Decide said Again
//	purse.Unspent(now, paid)             // the retry that was paid for was not made after all
//	purse.Success(now, paid)             // an attempt ended OK; paid is that attempt's own
type Purse interface {
	// Call records that the first attempt of a call is made.
	Call(now time.Duration)

	// Retry pays for one retry after an attempt that ended with o. If it returns false, it took no payment and the call ends with
	// ErrBudget. Call it before the delay.
	Retry(now time.Duration, o *outcome.Outcome) (paid Receipt, ok bool)

	// Unspent returns the payment for a retry that was not sent.
	Unspent(now time.Duration, paid Receipt)

	// Success records that a call succeeded. paid is the receipt of the successful attempt, zero for the first.
	Success(now time.Duration, paid Receipt)
}

// A Receipt records a payment. The zero Receipt is for a first attempt, which costs nothing. A receipt can be returned once.
type Receipt int64

var (
	_ Purse = (*Budget)(nil)
	_ Purse = (*Quota)(nil)
)
