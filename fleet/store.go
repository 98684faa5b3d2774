package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Store keeps the state of limits that several processes share. It grants units atomically, by its own clock,
// and counts them once even if a request is repeated. A store only keeps state. Fleet handles leases, waiting,
// priorities and outages.
//
// State belongs to a group, which is an upstream. Within a group there is a cell for each limit and key. An Ask
// is decided at one instant: each copy of the call gets all of its claims or none.
//
// After an error the effect of the call is unknown. Implementations respect ctx's deadline, also while they
// connect, and are safe for concurrent use. storetest checks all of this.
type Store interface {
	// Take executes the settlements of the request, and then grants as many copies of the call as its limits
	// allow. It writes the response into the Ask.
	Take(ctx context.Context, a *Ask) error

	// Beat handles a heartbeat of a process and returns the standing of the process in its group. See Members
	// for the arithmetic.
	Beat(ctx context.Context, b *Beat) (Standing, error)

	// Load returns the records with the names, and the store's clock. Version is 0 for a record that does not
	// exist.
	Load(ctx context.Context, group string, names []string) (records []Record, now time.Time, err error)

	// Swap writes a record if the stored version equals r.Version; 0 means that no record may exist. It returns
	// the record that is stored afterwards: r with its next version, or the record of another writer. The store
	// keeps the record for r.Keep.
	Swap(ctx context.Context, group string, r Record) (now Record, ok bool, err error)

	// Init declares that a group is new, so that its limits start full. Without Init, a store that can lose
	// data treats the limits of an unknown group as used up. Use it for an upstream that was not called lately.
	// It does not change a known group.
	Init(ctx context.Context, group string) error

	// Known returns the instant since which the store knows the usage of a group's limits. Everything before
	// counts as used. The instant is zero if the store never loses data, or if Init declared the group new. ok
	// is false if the store does not know the group.
	Known(ctx context.Context, group string) (since time.Time, ok bool, err error)

	// Close closes the store's connections. Stored state remains.
	Close() error
}

// ErrWindow reports that the store's clock is in neither of the two calendar windows of a claim. Ask.Now
// contains that clock. Nothing was changed.
var ErrWindow = errors.New("the store's clock is in another calendar window")

// An Ask is one request to a store. Group, Key and Name are any text of at most 256 bytes.
//
// The store executes a request at one instant of its clock, in this order. A repeat gets the response of the
// first request. Then follow the settlements, one after the other. Then the store grants as many Copies as
// every claim allows, all or none of each copy. Last, it grants Extra for each claim. The caller may reuse an
// Ask for its next request. Rules must not change while any request refers to them. An Ask is not safe for
// concurrent use.
type Ask struct {
	Group string

	// ID is not 0 and differs for every request. A store remembers the latest request of each lane and its
	// response for at least LaneKeep. A request with the ID of its lane's latest request is a repeat, even if
	// Again is false. It gets the same response, and its settlements are not executed again. A store that does not
	// remember marks omits them.
	ID    uint64
	Lane  uint64
	Again bool

	Settle []Settlement // executed first, independent of the grants
	Copies int64        // how many copies of the call are requested; 0 only reads
	Claims []Claim      // the charges of each copy; a limit and key may occur once, and numbers must not be negative

	// Response.
	Now     time.Time // the store's clock
	Granted int64     // number of copies, from 0 to Copies
	Grants  []Grant   // one for each claim; the slice is reused

	// Delay is the least time between the call of Take and the grant. A store that needs several round trips
	// sets it, so that the time before the last one does not count against the grant. 0 is always correct.
	Delay time.Duration
}

// A Claim is a charge of a request: one limit, one key, one cost.
type Claim struct {
	Rule *Rule
	Key  string
	Cost int64 // of each copy; 0 charges nothing, but is still refused while the limit is paused

	// Extra is how many additional units the process would like to lease. The store grants at most a quarter of
	// the units that remain after all copies, and none if it did not grant all copies.
	Extra int64

	limit.Windows // for shape Calendar
	// Seen is how many units the process knows to be used in the window that begins at Windows.Start. SeenBack
	// is Grant.Back of the same response. A store that lost the window counts at least Seen. Otherwise it
	// subtracts the units that were returned since.
	Seen, SeenBack int64

	// Cold is how many units the store may grant to this process although it lost the previous usage, so that
	// the limit may be used up. It is 0 under limit.ColdRefuse. A store that never loses data ignores it.
	Cold int64
}

// ColdFull is a Claim.Cold without a bound.
const ColdFull = 1 << 50

// A Rule is a limit in the form that a store enforces. It may be shared by goroutines that do not change it.
type Rule struct {
	Name   string
	Shape  limit.Shape
	Amount int64        // for shapes Rolling and Calendar
	Meter  bucket.Meter // for shape Bucket
	Ring   bucket.Ring  // for shape Rolling

	// Hold is how many microseconds after a request its grant may be used, if Meter or Ring allow for it.
	// Processes that share a limit may use different values: a store allows for the longest. See Cell.Hold.
	Hold int64

	// Tally marks a limit of shape Rolling whose units are counted and not limited. A store that lost its data
	// starts with none, and no process holds a part of it.
	Tally bool
}

// A Grant is the response to a claim.
type Grant struct {
	Extra  int64         // additional units granted
	Left   int64         // units that could still be granted
	Wait   time.Duration // until the limit allows one more copy; 0 if it does now, bucket.Never if it never will
	Reset  time.Duration // until the limit is full if nothing more is taken; for Calendar, until the window ends
	Drain  time.Duration // for shape Bucket: how long its weight lasts at least if no part is out; 0 is always correct
	Paused time.Duration // remaining time of a pause
	Back   int64         // for shape Calendar: units of the window that were returned
	Cold   bool          // the store is new or lost its data, so it does not know the usage and grants nothing
	Mark   Mark          // of the last unit granted; the additional units come last
}

// A Mark identifies a granted unit, so that it can be returned. Each unit before it is Step lower. With the
// zero Mark nothing can be returned. Only the store interprets the numbers. A process only computes the marks
// of units before the last.
type Mark struct{ At, Level, Step int64 }

// A Settlement reports units that were granted and are returned, or units that were used without a grant.
// Returned units are credited before debts are charged.
type Settlement struct {
	Rule *Rule
	Key  string
	limit.Windows

	Back int64 // returned units; Mark identifies the last of them
	Mark Mark  // without it no unit returns
	Owe  int64 // units used beyond the grant; they are charged even if none remain

	Pause time.Duration // the store grants no units for this time from now; it never shortens a pause
}

// A Record is a small value that several processes agree on: pauses, the state of a breaker, which process
// counts jobs. A writer first reads the record, and reads again if another writer was faster; see Swap. A
// version is never reused, not even after the record has expired.
type Record struct {
	Name    string
	Version int64
	Value   []byte
	Keep    time.Duration // how long the store keeps it after the write
}
