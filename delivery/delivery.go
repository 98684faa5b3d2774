package delivery

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Status is where a delivery stands.
type Status string

const (
	Created    Status = "created"    // behind another one of its order key
	Queued     Status = "queued"     // sent once it is due
	Processing Status = "processing" // claimed by a worker
	Completed  Status = "completed"  // the upstream did the work
	Failed     Status = "failed"     // a dead letter
)

// statuses are all of them, in order.
var statuses = [...]Status{Created, Queued, Processing, Completed, Failed}

// A Reason says why a delivery is a dead letter.
type Reason string

const (
	Rejected    Reason = "rejected"      // the upstream will not take it, however often
	Spent       Reason = "attempts"      // every attempt of its schedule failed
	Expired     Reason = "expired"       // it expired before it could be delivered
	Dropped     Reason = "dropped"       // by a person
	Gone        Reason = "upstream_gone" // the configuration has no such upstream any more
	Poison      Reason = "ended_worker"  // its attempts began and never ended: it may end whoever sends it
	Unavailable Reason = "unavailable"   // the breaker was open, and it was not to wait: GiveUp.Open
	Uncertain   Reason = "unknown"       // it may have been delivered, and was not to be repeated: GiveUp.Unknown
)

// Reasons lists every reason, for tables and metrics.
var Reasons = [...]Reason{Rejected, Spent, Expired, Dropped, Gone, Poison, Unavailable, Uncertain}

// A Request is what is to be sent. It holds no credentials: those are added when it is sent.
type Request struct {
	ID       string // of the delivery; "" has the queue make one
	Tenant   string // whose Key and OrderKey these are; "" where callers have no names
	Owner    string // who may look at it; "" for whoever knows its ID
	Upstream string

	Method string
	Path   string // raw, as at the upstream
	Query  string // raw
	Header http.Header
	Body   []byte
	Large  Blob // the body, if it stands beside the record; Body is empty then

	Key         string // the caller's idempotency key; "" if there is none
	OrderKey    string // deliveries of one key, tenant and upstream go one after the other; "" for none
	Stop        bool   // those that come after it under its order key wait while it is a dead letter; without it they go on
	Correlation string // id of the call that handed it in

	// Callback names whom to tell once it is over; "" for nobody. See Callback.
	Callback string
	// Tells is the ID of the delivery of which this one tells, as its Callback; "" for what callers hand in. Nobody is told of it.
	Tells string

	NotBefore time.Time // zero: at once
	Expires   time.Time // zero: never

	// Late is why the request is not stored if it is new, as whoever hands it in has found that its time has passed; nil: it
	// may be. It is not stored itself.
	Late *FieldError

	// TokenEnds is when what the caller showed ends, such as a token; zero: nobody knows of an end. Expires is not after it.
	// A delivery is not redriven after it, unless who does so says that it is to be: see Filter.TokenEnded.
	TokenEnds time.Time
}

// MaxBody is the largest body that stands in the record of a request; see Bodies for larger ones.
const MaxBody = 256 << 10

// Size is that of the body in bytes.
func (r *Request) Size() int64 { return max(int64(len(r.Body)), r.Large.Size) }

// A Delivery is a request that was accepted, and what became of it so far.
type Delivery struct {
	Request
	Seq      int64 // of the queue that keeps it
	Status   Status
	Due      time.Time // when it may be sent, if it waits
	Attempts int       // that were begun in the present series and not given back
	Starts   int       // attempts that were ever begun
	Series   int       // 1, and one more with each redrive
	Accepted time.Time
	Changed  time.Time // when it came to its status
	Reason   Reason    // why it failed; "" otherwise
	Detail   string    // the same in words
	Fence    int64     // of the latest claim
	Lease    time.Time // until when the claim holds, while it is processing
}

// Waits reports whether the delivery is neither delivered nor dead.
func (d *Delivery) Waits() bool { return d.Status != Completed && d.Status != Failed }

// MayGo reports whether the delivery is queued, and its time has come and not passed.
func (d *Delivery) MayGo(now time.Time) bool {
	return d.Status == Queued && !d.Due.After(now) && (d.Expires.IsZero() || d.Expires.After(now))
}

// Calls reports whether somebody is told of the request once it is over.
func (r *Request) Calls() bool { return r.Callback != "" && r.Tells == "" }

// An Attempt is one that ended, or was found not to have.
type Attempt struct {
	N       int // counts from 1 over all series
	Series  int
	Began   time.Time
	Took    time.Duration
	Status  int // of the answer; 0 if there was none
	Class   outcome.Class
	Code    string // the upstream's word for it, or what went wrong
	Answer  []byte // the beginning of the answer's body, at most MaxAnswer
	Counted bool   // it is one of the schedule's; false if it was given back
}

// MaxAnswer is how much of an answer's body is kept.
const MaxAnswer = 4 << 10

// NewID makes the ID of a delivery: a UUID of version 7, so that IDs sort by time.
func NewID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return idOf(now, b)
}

// idOf is the ID of an instant and of bits that tell it from others.
func idOf(at time.Time, b [16]byte) string {
	ms := uint64(max(0, at.UnixMilli()))
	binary.BigEndian.PutUint16(b[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(ms))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
