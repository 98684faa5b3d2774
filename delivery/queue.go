package delivery

import (
	"context"
	"errors"
	"time"
)

// A Queue keeps deliveries. What a method changes has been stored durably when the method
// returns, whole or not at all; every change is conditional on the state before it. Time is the
// queue's own. It is safe for concurrent use; package deliverytest has the tests that every
// queue must pass.
type Queue interface {
	// Accept stores a request. With a Key that the tenant used for this upstream before, it
	// stores nothing: the same request gets the delivery there is, and fresh is false; another
	// request gets ErrKeyReused. CheckTimes judges new requests alone. After ErrUncertain nobody knows whether it was stored: the
	// same Key, or the ID in the Delivery, finds out.
	Accept(ctx context.Context, r *Request) (d Delivery, fresh bool, err error)

	// Due lists deliveries of an upstream that are queued, due and not expired, the longest due
	// first, with what is to be sent: those after a mark, or all after the zero one. It claims nothing.
	Due(ctx context.Context, upstream string, after Mark, most int) ([]Delivery, error)

	// Next is when the next queued delivery of an upstream is due, which may be past, of those
	// after a mark; false if none is queued.
	Next(ctx context.Context, upstream string, after Mark) (at time.Time, ok bool, err error)

	// Claim begins an attempt of deliveries that are due and not expired: they are processing
	// for the length of the lease, under a new fence.
	Claim(ctx context.Context, a Ask) ([]Delivery, error)

	// Defer puts off deliveries that are queued, and were not claimed. No attempt is counted.
	Defer(ctx context.Context, until time.Time, seqs ...int64) error

	// Renew lengthens leases to a length counted from now. It returns those that the caller
	// does not hold any more.
	Renew(ctx context.Context, lease time.Duration, claims ...Claim) (lost []Claim, err error)

	// End records how attempts ended. It returns the claims that were lost before: of those
	// nothing is recorded.
	End(ctx context.Context, ends ...End) (lost []Claim, err error)

	// Sweep does, in groups, what nobody asks for: claims whose lease ran out go back to the
	// queue, or become dead letters after MaxStalls; what expired becomes a dead letter; what
	// has been kept long enough is deleted. With an error it says what it did nevertheless.
	// away has upstreams that are not there, and how the Detail of what expires of theirs begins.
	Sweep(ctx context.Context, away map[string]string) (Swept, error)

	// Redrive queues dead letters again, each in a new series and at the end of its order key, or at its
	// place if it stops the key. One whose Expires has passed expires with its caller's token; one whose caller's token
	// has ended stays, unless the filter has TokenEnded.
	// Drop makes dead letters of what waits, and deletes dead letters only where the filter's
	// Status is Failed; it refuses the zero Filter. Both handle at most a number of those that
	// the filter finds, and return how many.
	Redrive(ctx context.Context, f Filter, most int) (int, error)
	Drop(ctx context.Context, f Filter, most int) (int, error)

	// Owing lists deliveries that are over and call back, and of which nobody has been told in their present series: those that
	// came to their status longest ago first, after a mark (of Changed and Seq), without bodies and headers. They are kept until
	// Told. Told says that whom it concerns was told of a series, or is not to be.
	Owing(ctx context.Context, after Mark, most int) ([]Delivery, error)
	Told(ctx context.Context, seq int64, series int) error

	// Abandon makes dead letters of what waits for an upstream that is gone.
	Abandon(ctx context.Context, upstream string) (int, error)

	// Get finds a delivery by its ID, or returns ErrNotFound. Attempts are those of a
	// delivery, the first one first.
	Get(ctx context.Context, id string) (Delivery, error)
	Attempts(ctx context.Context, id string) ([]Attempt, error)

	// List pages through deliveries in the order in which they were accepted, the latest first or the oldest, without bodies and headers. The next
	// page begins at the cursor that comes with this one; "" means that this was the last.
	List(ctx context.Context, f Filter, cursor string, most int) (page []Delivery, next string, err error)

	// Counts is how many deliveries there are; it takes as long for a million as for one.
	Counts(ctx context.Context) ([]Count, error)

	Close() error
}

var (
	ErrNotFound  = errors.New("no such delivery")
	ErrKeyReused = errors.New("the idempotency key was used for another request")
	ErrUncertain = errors.New("whether the delivery was stored is unknown")
	ErrCursor    = errors.New("the cursor does not belong to this list")
	ErrClosed    = errors.New("the deliveries' queue is closed")
	ErrFull      = errors.New("the deliveries' store is full")
	ErrShare     = errors.New("the caller already stores as many deliveries as allowed")

	// ErrUnavailable is a queue that cannot be opened now: its disk is full, or fails. It may be there later.
	ErrUnavailable = errors.New("deliveries cannot be opened now")
)

// MaxStalls is how many attempts of a delivery may begin one after the other without an end
// before it is taken for what ended its workers.
const MaxStalls = 3

// A Mark is a place among what is due: Due lists in the order of marks.
type Mark struct {
	Due time.Time
	Seq int64
}

// Mark is the delivery's place among what is due.
func (d *Delivery) Mark() Mark { return Mark{d.Due, d.Seq} }

// Before reports whether the mark comes before another.
func (m Mark) Before(other Mark) bool {
	return m.Due.Before(other.Due) || m.Due.Equal(other.Due) && m.Seq < other.Seq
}

// less is the mark before the mark: what is after it begins there.
func (m Mark) less() Mark { return Mark{m.Due, m.Seq - 1} }

// An Ask says what to claim.
type Ask struct {
	Upstream string
	Only     []int64 // of these by Seq; none means whichever is longest due
	Most     int     // 0 means 1, or all of Only
	Owner    string  // the worker, for people
	Lease    time.Duration
}

// A Claim names an attempt.
type Claim struct{ Seq, Fence int64 }

// Claim is the delivery's latest.
func (d *Delivery) Claim() Claim { return Claim{d.Seq, d.Fence} }

// An End is how an attempt ended. To is Completed, Failed, or Queued for another attempt at Due.
type End struct {
	Claim
	To       Status
	Due      time.Time
	GiveBack bool // with Queued: the attempt does not count
	Alone    bool // the delivery has no order key: none waits for its end, and none is looked for
	Again    bool // it was asked for before, and nobody knows whether it was recorded: if it was, it is not lost
	Reason   Reason
	Detail   string
	Attempt  *Attempt // to be kept; nil if nothing was sent
}

// Swept is what a Sweep did.
type Swept struct {
	Reaped int                       // claims whose lease had run out
	Left   map[string]int            // by upstream, attempts whose workers left them, also before the queue was opened: they may be repeated
	Dead   map[string]map[Reason]int // dead letters that it made, by upstream
	Died   []Letter                  // the same dead letters one by one, as far as they could be read
	Pruned int                       // deliveries that were deleted
	More   bool                      // there is more to do at once
}

// A Letter is a delivery that became a dead letter.
type Letter struct {
	Upstream, ID, Correlation string
	Attempts                  int // in its latest series
	Reason                    Reason
}

// Letter is the delivery as a dead letter.
func (d *Delivery) Letter() Letter {
	return Letter{d.Upstream, d.ID, d.Correlation, d.Attempts, d.Reason}
}

// Leaves counts an attempt of an upstream that its worker left.
func (s *Swept) Leaves(upstream string) {
	if s.Left == nil {
		s.Left = make(map[string]int)
	}
	s.Left[upstream]++
}

// A Filter chooses deliveries. The zero Filter chooses all.
type Filter struct {
	IDs      []string
	Upstream string
	Status   Status
	Reason   Reason
	Tenant   string
	Owner    string
	Before   time.Time // came to its status before

	TokenEnded bool // of Redrive: those whose callers' tokens have ended, too; they have no end then
	Oldest     bool // of List: the first to come is the first
}

// A Count is how many deliveries of an upstream have a status.
type Count struct {
	Upstream string
	Status   Status
	N        int64
	Oldest   time.Time // when the one that failed first did; zero for other statuses

	// Waiting is when the oldest that waits was accepted, of Created and Queued; zero for other statuses. A store in
	// DynamoDB and PostgreSQL finds it among those that are due first.
	Waiting time.Time
}
