package delivery

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Status is the state of a delivery.
type Status string

const (
	Created    Status = "created"    // waits behind another delivery of its order key
	Queued     Status = "queued"     // is sent when it is due
	Processing Status = "processing" // claimed by a worker
	Completed  Status = "completed"  // the upstream accepted it
	Failed     Status = "failed"     // a dead letter
)

// statuses lists every status, in the order of the states.
var statuses = [...]Status{Created, Queued, Processing, Completed, Failed}

// A Reason is why a delivery is a dead letter.
type Reason string

const (
	Rejected    Reason = "rejected"      // the upstream refuses it, and would refuse a retry
	Spent       Reason = "attempts"      // every attempt of its schedule failed
	Expired     Reason = "expired"       // it expired before it could be delivered
	Dropped     Reason = "dropped"       // an operator dropped it
	Gone        Reason = "upstream_gone" // the upstream is no longer configured
	Poison      Reason = "ended_worker"  // its attempts began and never ended: it may crash its workers
	Unavailable Reason = "unavailable"   // the breaker was open, and GiveUp.Open is set
	Uncertain   Reason = "unknown"       // an attempt may have been delivered, and GiveUp.Unknown is set
)

// Reasons lists every reason, for tables and metrics.
var Reasons = [...]Reason{Rejected, Spent, Expired, Dropped, Gone, Poison, Unavailable, Uncertain}

// A Request is a call to be sent later. It holds no credentials: the Sender adds them. It may be shared by
// goroutines that do not change it.
type Request struct {
	ID       string // of the delivery; if empty, the queue makes one
	Tenant   string // scope of Key and OrderKey; empty if callers have no names
	Owner    string // the caller that may read it; empty allows any caller that has its ID
	Upstream string

	Method string
	Path   string // escaped, as the upstream expects it
	Query  string // escaped
	Header http.Header
	Body   []byte
	Large  Blob // a body that is stored outside the record; Body is empty then

	Key         string // the caller's idempotency key; may be empty
	OrderKey    string // deliveries with the same order key, tenant and upstream are sent one at a time, in order; may be empty
	Stop        bool   // a dead letter blocks later deliveries of its order key; if false, they continue
	Correlation string // ID of the call that submitted it

	// Callback names the Callback to notify when the delivery has ended. Empty means none.
	Callback string
	// Tells is the ID of the delivery that this request reports on, if it is a callback. It is empty for requests of
	// callers. A callback causes no further callback.
	Tells string

	NotBefore time.Time // zero: now
	Expires   time.Time // zero: never

	// Late, if not nil, is the reason not to store the request if it is new: the submitter found that its time has
	// passed. It is not stored.
	Late *FieldError

	// TokenEnds is when the caller's credential, such as a token, expires. Zero means that no expiry is known. Expires
	// must not be later. A delivery is not redriven after TokenEnds unless Filter.TokenEnded is set.
	TokenEnds time.Time
}

// MaxBody is the largest body, in bytes, that is stored in the record of a request. See Bodies for larger ones.
const MaxBody = 256 << 10

// Size returns the size of the body in bytes.
func (r *Request) Size() int64 { return max(int64(len(r.Body)), r.Large.Size) }

// A Delivery is an accepted request and its present state. It may be shared by goroutines that do not change
// it.
type Delivery struct {
	Request
	Seq      int64 // assigned by the queue
	Status   Status
	Due      time.Time // when it may be sent, if it is created or queued
	Attempts int       // attempts of the present series, without those given back
	Starts   int       // attempts of all series
	Series   int       // 1, plus one for each redrive
	Accepted time.Time
	Changed  time.Time // when it reached its status
	Reason   Reason    // why it failed; empty otherwise
	Detail   string    // the reason in words
	Fence    int64     // of the latest claim
	Lease    time.Time // when the claim ends, if it is processing
}

// Waits reports whether the delivery has not ended yet.
func (d *Delivery) Waits() bool { return d.Status != Completed && d.Status != Failed }

// MayGo reports whether the delivery is queued, due and not expired.
func (d *Delivery) MayGo(now time.Time) bool {
	return d.Status == Queued && !d.Due.After(now) && (d.Expires.IsZero() || d.Expires.After(now))
}

// Calls reports whether the request causes a callback when it has ended.
func (r *Request) Calls() bool { return r.Callback != "" && r.Tells == "" }

// An Attempt is an attempt that ended, or that a sweep found abandoned.
type Attempt struct {
	N       int // counts from 1 over all series
	Series  int
	Began   time.Time
	Took    time.Duration
	Status  int // of the response; 0 if there was none
	Class   outcome.Class
	Code    string // the upstream's error code, or a description of the failure
	Answer  []byte // the first bytes of the response body, at most MaxAnswer
	Counted bool   // counts as an attempt of the schedule; false if it was given back
}

// MaxAnswer is how many bytes of a response body are kept.
const MaxAnswer = 4 << 10

// NewID returns a new ID for a delivery: a UUID of version 7. These IDs sort by time.
func NewID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return idOf(now, b)
}

// idOf returns the ID with the given time and random bits.
func idOf(at time.Time, b [16]byte) string {
	ms := uint64(max(0, at.UnixMilli()))
	binary.BigEndian.PutUint16(b[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(ms))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
