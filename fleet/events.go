package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"time"
)

// Events are called as things happen, one after the other for each subject.
// They must not block. Nil means unheard.
type Events struct {
	// Called is after each call to the store that is made for calls of the program, or gives something back, on the
	// goroutine that made it.
	Called func(StoreCall)

	// Fallback is when the process begins to go on without the store, does so for longer than the store keeps its parts,
	// and when the store is back: one after the other, in order, with no lock held.
	Fallback func(FallbackEvent)
}

// TeeFleet is the events that tell all.
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

// A StoreCall is one call to the store, made for everyone who waited for it. One for nobody only gives back.
type StoreCall struct {
	Group   string
	Limits  []LimitCall // that were asked for; to be read during the event only
	Calls   int         // of the program, that it was made for
	Granted int64       // of these
	Back    int64       // units that were given back, over all limits
	Took    time.Duration
	Again   bool // a repeat
	Err     error
}

// A LimitCall is what a call to the store brought of one limit.
type LimitCall struct {
	Limit  *limit.Limit
	Units  int64 // granted for the calls
	Leased int64 // and besides
}

// A FallbackEvent says that the store is away, so that this process goes on with its parts
// of the limits, or that it is back.
type FallbackEvent struct {
	Away  bool
	Past  bool          // for longer than the store keeps parts: what is configured for that is done now
	Err   error         // why, if it is away
	For   time.Duration // how long it has been away
	Spent int64         // units that were let go meanwhile, over all limits
}
