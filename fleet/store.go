package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Store keeps the state of limits that several processes share. What is taken
// from it is taken atomically, by the store's own clock, and counted once however
// often a call is repeated. A store says no more than what it knows: leases,
// waiting, priorities and what happens while it is away are the business of Fleet.
//
// State belongs to a group, which is an upstream. Within a group it is kept by
// limit and key. An Ask is decided at once: each copy of the call has all of its claims or none.
//
// Errors mean that nothing is known of what became of the call. Implementations
// respect ctx's deadline, never dial in the caller's path longer than that, and are
// safe for concurrent use. storetest holds them to all of this.
type Store interface {
	// Take settles what the ask settles and then grants as many copies of the call
	// as its limits bear. The answer is written into the ask.
	Take(ctx context.Context, a *Ask) error

	// Beat says that a process of the group is alive, and answers how it stands. See
	// Members for the arithmetic.
	Beat(ctx context.Context, b *Beat) (Standing, error)

	// Load reads records by name, a Version of 0 meaning that there is none, and the
	// store's clock.
	Load(ctx context.Context, group string, names []string) (records []Record, now time.Time, err error)

	// Swap writes a record if it still has the version that r has, 0 meaning that
	// there must be none, and returns the record as it is then: with the next
	// version, or as another has written it. It is kept for r.Keep.
	Swap(ctx context.Context, group string, r Record) (now Record, ok bool, err error)

	// Init says of a group that it is new: its limits start full. Without it those of a group that
	// the store knows nothing of count as used up, if the store can forget. It is for an upstream that
	// has not been called lately, and changes nothing that is known.
	Init(ctx context.Context, group string) error

	// Known is since when the store knows what became of a group's limits; what was used of them
	// before counts as all. It is zero if the store always has: it forgets nothing, or somebody said by
	// Init that the group is new. ok is false if the store knows nothing of the group yet.
	Known(ctx context.Context, group string) (since time.Time, ok bool, err error)

	// Close ends the store's connections. What it keeps stays.
	Close() error
}

// ErrWindow is what Take returns when neither of the calendar windows that a
// claim names holds the store's present. Ask.Now says what that is. Nothing was done.
var ErrWindow = errors.New("the store's clock is in another calendar window")

// An Ask is one request to a store. Group, Key and Name are any text, within the
// 256 bytes that weir keeps of a key.
//
// It is executed in this order, at one instant of the store's clock: a repeat gets the answer that it has had; Settle, one
// after the other; as many of Copies as every claim bears, all or none of each copy; Extra of each claim by itself. An Ask
// may be used again for the next one; Rules must stay as they are for as long as anybody may read them.
type Ask struct {
	Group string

	// ID is never 0 and never the same for two asks. Of each lane the store
	// remembers the latest ask and its answer for a minute at least. An ask with the
	// ID of its lane's latest is a repeat, whether Again is set or not, and gets
	// that answer, without marks: what a repeat settles is not settled twice.
	ID    uint64
	Lane  uint64
	Again bool

	Settle []Settlement // what is done first, whatever is granted
	Copies int64        // how many copies of the call are wanted; 0 only looks
	Claims []Claim      // what each copy is charged; the same limit and key twice are ErrAsk, as are negative numbers

	// The answer.
	Now     time.Time // the store's clock
	Granted int64     // copies, from 0 to Copies
	Grants  []Grant   // one for each claim; the slice is used again

	// Delay is how long after the call of Take the store granted this at the earliest: a store that needs several round trips
	// for an ask sets it, so that the time before the last of them does not count against what was granted. 0 is always right.
	Delay time.Duration
}

// A Claim is a charge of an ask: one limit, one key, one cost.
type Claim struct {
	Rule *Rule
	Key  string
	Cost int64 // for each copy; 0 takes nothing but refuses nevertheless if the limit is paused

	// Extra is what the process would like besides, to spend by itself. It gets
	// at most a quarter of what is left after all copies, and nothing of it if not all
	// copies were granted.
	Extra int64

	limit.Windows // for shape Calendar
	// Seen is how much the process knows to have gone in the window that begins at
	// Windows.Start, and SeenBack is what Grant.Back was then. A store that has lost
	// that counts at least so much; one that has not counts what has come back since.
	Seen, SeenBack int64

	// Cold is how many units this process may be granted although the store lost what it knew and the limit may be used up:
	// 0 as long as limit.ColdRefuse is in force. A store that never loses its memory ignores it.
	Cold int64
}

// ColdFull is a Claim.Cold without a bound.
const ColdFull = 1 << 50

// A Rule is a limit as a store is to hold it.
type Rule struct {
	Name   string
	Shape  limit.Shape
	Amount int64        // of shapes Rolling and Calendar
	Meter  bucket.Meter // of shape Bucket
	Ring   bucket.Ring  // of shape Rolling

	// Hold is how many microseconds after an ask what it was granted may be used, if Meter or
	// Ring allow for that. Processes that share a limit may differ in it: a store allows for
	// the longest. See Cell.Hold.
	Hold int64

	// Tally says that units of shape Rolling are counted and not limited: a store that has
	// lost its memory begins with none, and nobody holds a part of them.
	Tally bool
}

// A Grant is what a store answers to a claim.
type Grant struct {
	Extra  int64         // units granted besides the copies
	Left   int64         // units that could be granted still
	Wait   time.Duration // until the limit would bear one copy more; 0 if it would now, bucket.Never if it never will
	Reset  time.Duration // until everything is there again, nothing more being taken; for Calendar, until the window's end
	Drain  time.Duration // of shape Bucket: for how long its weight lasts at least if no part is out; 0 is always right
	Paused time.Duration // how long a pause still lasts
	Back   int64         // units of the window that have come back; of shape Calendar
	Cold   bool          // the store does not know what has gone, and grants nothing: it is new, or has lost its memory
	Mark   Mark          // of the last unit granted, the extra ones being last
}

// A Mark says where a unit stands, so that it can come back. Each unit before it
// stands Step lower. The zero Mark is none: nothing comes back by it. What the numbers mean is the store's; nobody else
// reckons with them but to say where a unit before the last stands.
type Mark struct{ At, Level, Step int64 }

// A Settlement is what a process says of units that were granted to it, or used
// without that. What comes back does so before what is owed is charged.
type Settlement struct {
	Rule *Rule
	Key  string
	limit.Windows

	Back int64 // units that come back; the last of them is that of the mark
	Mark Mark  // without it nothing comes back
	Owe  int64 // units that were used beyond what was granted: they are charged whatever is left

	Pause time.Duration // nothing is granted for so long from now; a pause is never made shorter
}

// A Record is a small value that several processes agree on: pauses, the state of a breaker, who counts jobs. Who writes one
// has read it before, and reads again if another was faster, see Swap. A version never comes
// again, not even after the record has expired.
type Record struct {
	Name    string
	Version int64
	Value   []byte
	Keep    time.Duration // how long it is kept after it was written
}
