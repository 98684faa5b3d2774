package delivery

import (
	"context"
	"errors"
	"time"
)

// A Queue stores deliveries. Each change is atomic and conditional on the previous state, and is durable when the
// method returns. The queue uses its own clock. It is safe for concurrent use. Package deliverytest has the tests that
// every queue must pass.
type Queue interface {
	// Accept stores a request. If the tenant used its Key for this upstream before, Accept stores nothing. It returns
	// the existing delivery, with fresh false, if the request is the same, and ErrKeyReused if it differs. CheckTimes
	// applies only to new requests. After ErrUncertain the request may be stored or not: a retry with the same Key, or
	// Get with the ID in the Delivery, finds out.
	Accept(ctx context.Context, r *Request) (d Delivery, fresh bool, err error)

	// Due lists deliveries of an upstream that are queued, due and not expired, with their bodies and headers. They are
	// in the order of their marks, the earliest due first, and begin after a mark, or with the first one if the mark is
	// zero. Due claims nothing.
	Due(ctx context.Context, upstream string, after Mark, most int) ([]Delivery, error)

	// Next returns when the first queued delivery after a mark is due, which may be in the past. ok is false if none is
	// queued.
	Next(ctx context.Context, upstream string, after Mark) (at time.Time, ok bool, err error)

	// Claim begins an attempt of deliveries that are due and not expired. They are processing for the length of the
	// lease, under a new fence.
	Claim(ctx context.Context, a Ask) ([]Delivery, error)

	// Defer postpones queued deliveries without a claim. It counts no attempt.
	Defer(ctx context.Context, until time.Time, seqs ...int64) error

	// Renew extends leases to the given length from now. It returns the claims that the caller no longer holds.
	Renew(ctx context.Context, lease time.Duration, claims ...Claim) (lost []Claim, err error)

	// End records how attempts ended. It returns the claims that were lost before, for which it records nothing.
	End(ctx context.Context, ends ...End) (lost []Claim, err error)

	// Sweep does maintenance, in batches. It returns claims with an expired lease to the queue, or makes dead letters
	// of them after MaxStalls. It makes dead letters of expired deliveries, and deletes deliveries after their
	// retention. If it returns an error, Swept contains the work that was done nevertheless. away maps unavailable
	// upstreams to the beginning of the Detail of their expired deliveries.
	Sweep(ctx context.Context, away map[string]string) (Swept, error)

	// Redrive queues dead letters again, each in a new series. It puts each at the end of its order key, or at its
	// previous position if it blocks the key. A dead letter whose Expires has passed then expires with its caller's
	// token. One whose caller's token has ended stays a dead letter, unless the filter has TokenEnded.
	// Drop makes dead letters of created and queued deliveries. If the filter's Status is Failed, it deletes dead
	// letters instead. It refuses the zero Filter. Both handle at most the given number of matching deliveries and
	// return how many.
	Redrive(ctx context.Context, f Filter, most int) (int, error)
	Drop(ctx context.Context, f Filter, most int) (int, error)

	// Owing lists deliveries that have ended, call back, and have no callback yet in their present series. They are
	// sorted by when they reached their status, begin after a mark (of Changed and Seq), and lack bodies and headers.
	// The queue keeps them until Told, which records that the callback of a series is stored or given up.
	Owing(ctx context.Context, after Mark, most int) ([]Delivery, error)
	Told(ctx context.Context, seq int64, series int) error

	// Abandon makes dead letters of created and queued deliveries of a removed upstream.
	Abandon(ctx context.Context, upstream string) (int, error)

	// Get returns the delivery with an ID, or ErrNotFound. Attempts returns the attempts of a delivery, the first one
	// first.
	Get(ctx context.Context, id string) (Delivery, error)
	Attempts(ctx context.Context, id string) ([]Attempt, error)

	// List returns a page of deliveries in the order in which they were accepted, the latest first or the oldest first,
	// without bodies and headers. next is the cursor of the next page. It is empty after the last page.
	List(ctx context.Context, f Filter, cursor string, most int) (page []Delivery, next string, err error)

	// Counts returns how many deliveries there are. It takes as long for a million as for one.
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

	// ErrUnavailable means that a queue cannot be opened now, for example because its disk is full. A later attempt may
	// succeed.
	ErrUnavailable = errors.New("deliveries cannot be opened now")
)

// MaxStalls is how many consecutive attempts of a delivery may begin without an end. After them, Sweep assumes that the
// delivery crashes its workers.
const MaxStalls = 3

// A Mark is a position in the order of Due.
type Mark struct {
	Due time.Time
	Seq int64
}

// Mark returns the delivery's position in the order of Due.
func (d *Delivery) Mark() Mark { return Mark{d.Due, d.Seq} }

// Before reports whether m precedes other.
func (m Mark) Before(other Mark) bool {
	return m.Due.Before(other.Due) || m.Due.Equal(other.Due) && m.Seq < other.Seq
}

// less returns the mark directly before m, so that a list after it begins with m.
func (m Mark) less() Mark { return Mark{m.Due, m.Seq - 1} }

// An Ask describes a claim.
type Ask struct {
	Upstream string
	Only     []int64 // Seqs to claim; if empty, the earliest due
	Most     int     // 0 means 1, or all of Only
	Owner    string  // name of the worker, for operators
	Lease    time.Duration
}

// A Claim identifies an attempt.
type Claim struct{ Seq, Fence int64 }

// Claim returns the delivery's latest claim.
func (d *Delivery) Claim() Claim { return Claim{d.Seq, d.Fence} }

// An End is how an attempt ended. To is Completed, Failed, or Queued for another attempt at Due.
type End struct {
	Claim
	To       Status
	Due      time.Time
	GiveBack bool // with Queued: do not count the attempt
	Alone    bool // the delivery has no order key: no other delivery waits for its end
	Again    bool // the call is repeated after an error: if End was recorded already, the claim is not lost
	Reason   Reason
	Detail   string
	Attempt  *Attempt // to be kept; nil if no attempt was sent
}

// Swept is the result of a Sweep.
type Swept struct {
	Reaped int                       // claims whose lease had expired
	Left   map[string]int            // by upstream, attempts that their workers abandoned, also before the queue was opened; they may be repeated
	Dead   map[string]map[Reason]int // dead letters made, by upstream
	Died   []Letter                  // the same dead letters, except those that could not be read
	Pruned int                       // deliveries deleted
	More   bool                      // another Sweep has more to do now
}

// A Letter describes a new dead letter.
type Letter struct {
	Upstream, ID, Correlation string
	Attempts                  int // of its latest series
	Reason                    Reason
}

// Letter returns the delivery's Letter.
func (d *Delivery) Letter() Letter {
	return Letter{d.Upstream, d.ID, d.Correlation, d.Attempts, d.Reason}
}

// Leaves counts an abandoned attempt of an upstream.
func (s *Swept) Leaves(upstream string) {
	if s.Left == nil {
		s.Left = make(map[string]int)
	}
	s.Left[upstream]++
}

// A Filter selects deliveries. The zero Filter selects all. It may be shared by goroutines that do not change it.
type Filter struct {
	IDs      []string
	Upstream string
	Status   Status
	Reason   Reason
	Tenant   string
	Owner    string
	Before   time.Time // reached its status before this time

	TokenEnded bool // for Redrive: include those whose callers' tokens have ended; they no longer expire
	Oldest     bool // for List: the oldest first
}

// A Count is how many deliveries of an upstream have a status.
type Count struct {
	Upstream string
	Status   Status
	N        int64
	Oldest   time.Time // when the first of them failed; zero for other statuses

	// Waiting is when the oldest Created or Queued delivery was accepted. It is zero for other statuses. A store in
	// DynamoDB or PostgreSQL considers only the deliveries that are due first.
	Waiting time.Time
}
