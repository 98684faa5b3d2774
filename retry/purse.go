package retry

import (
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Purse pays for retries, so that an upstream in trouble gets few of them. It
// is shared by all calls of one upstream and safe for concurrent use. Instants
// are those of one clock.Clock.
//
// A call goes through it like this:
//
//	purse.Call(now)                      // before the first attempt, once it is allowed
//	paid, ok := purse.Retry(now, o)      // an attempt ended with o; Decide said Again
//	purse.Unspent(now, paid)             // the retry that was paid for was not made after all
//	purse.Success(now, paid)             // an attempt ended OK; paid is that attempt's own
type Purse interface {
	// Call notes that a call's first attempt is made.
	Call(now time.Duration)

	// Retry pays for one retry after an attempt that ended with o. If it
	// reports false, nothing was paid and the call ends with ErrBudget. It is
	// asked before the wait, not after it.
	Retry(now time.Duration, o *outcome.Outcome) (paid Receipt, ok bool)

	// Unspent takes back the payment for a retry that was never sent.
	Unspent(now time.Duration, paid Receipt)

	// Success notes that a call ended well, with the receipt of the attempt
	// that did it: zero if that was the first.
	Success(now time.Duration, paid Receipt)
}

// A Receipt is a purse's own note of a payment. The zero Receipt is that of a
// first attempt, for which nothing was paid. It is used up by handing it back.
type Receipt int64

var (
	_ Purse = (*Budget)(nil)
	_ Purse = (*Quota)(nil)
)
