package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"time"
)

// Events are callbacks. They are called one after the other for each subject, and must not block. Nil means no
// callback.
type Events struct {
	// Called is called after each store request that is made for calls of the program or that returns units, on
	// the goroutine that made it.
	Called func(StoreCall)

	// Fallback is called when an outage of the store begins, when the outage outlasts the reservation of parts,
	// and when the store is back: one event after the other, in order, with no lock held.
	Fallback func(FallbackEvent)
}

// TeeFleet returns Events that call the callbacks of all.
func TeeFleet(all ...Events) Events {
	return Events{
		Called: func(c StoreCall) {
			for _, e := range all {
				if e.Called != nil {
					e.Called(c)
				}
			}
		},
		Fallback: func(f FallbackEvent) {
			for _, e := range all {
				if e.Fallback != nil {
					e.Fallback(f)
				}
			}
		},
	}
}

// A StoreCall is one request to the store, made for all callers that waited for it. If Calls is 0, it only
// returns units.
type StoreCall struct {
	Group   string
	Limits  []LimitCall // requested limits; read them only during the event
	Calls   int         // how many calls of the program it was made for
	Granted int64       // how many of these calls got their units
	Back    int64       // returned units, over all limits
	Took    time.Duration
	Again   bool // a repeat
	Err     error
}

// A LimitCall is the result of a store request for one limit.
type LimitCall struct {
	Limit  *limit.Limit
	Units  int64 // granted for the calls
	Leased int64 // granted as blocks to lease
}

// A FallbackEvent reports that the store is unavailable, so that this process spends its parts of the limits,
// or that the store is back.
type FallbackEvent struct {
	Away  bool
	Past  bool          // the outage is longer than the store reserves parts; Options.Without applies now
	Err   error         // the cause, if Away
	For   time.Duration // duration of the outage so far
	Spent int64         // units spent during the outage, over all limits
}
