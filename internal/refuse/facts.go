// Package refuse is the one writer of refusals: what callers are to be told of a call that weir
// did not make, and its renderings. HTTP, the decision API, Envoy, gRPC and the dialects of
// providers each render the same [Facts], so that none says another status, wait or reason.
package refuse

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// The codes of weir's own errors.
const (
	ValidationError    = "VALIDATION_ERROR"
	Unauthorized       = "UNAUTHORIZED"
	Forbidden          = "FORBIDDEN"
	NotFound           = "NOT_FOUND"
	RateLimitExceeded  = "RATE_LIMIT_EXCEEDED"
	ServiceUnavailable = "SERVICE_UNAVAILABLE"
	InternalError      = outcome.InternalError
)

// Facts are what a caller is told of an error of weir's own: that nothing was sent, or nothing
// came back. Those of a refusal are made by Of.
type Facts struct {
	Status  int            // of HTTP
	Code    string         // one of weir's
	Message string         // without secrets and addresses
	Details map[string]any // for those who read JSON

	Fault   outcome.Fault // what can be done about it; NoFault means what the code says
	Reason  weir.Reason   // why it was not sent, if a gate said no; "" for all other errors
	Wait    time.Duration // when to come back, at least 1 ms for a refusal; 0 if that is not known
	Endless bool          // nobody knows when; Wait is then when to ask again
	Final   bool          // it was tried often enough: the caller should not repeat it

	Limits         []Limit // what is left of the call's limits, first that which said no; none if it was no limit
	Pool           string  // whom a hint of the upstream holds, if it was no limit
	Place, Waiting int     // where the call stood in line, and how many stood there; 0 if it stood in none
}

// Of is what is to be told of a refusal. The wait is drawn once, so all renderings of the same
// Facts say the same one.
func Of(r *weir.Refusal, now time.Time) *Facts {
	f := &Facts{
		Status: http.StatusTooManyRequests, Code: RateLimitExceeded,
		Reason: r.Reason, Wait: jittered(r), Endless: r.Endless(), Pool: r.Pool, Place: r.Place, Waiting: r.Waiting,
	}
	if r.Unavailable() {
		f.Status, f.Code = http.StatusServiceUnavailable, ServiceUnavailable
	}
	said := *r
	if !r.Endless() {
		said.RetryAfter = f.Wait // one number everywhere
	}
	f.Message = said.Error()
	f.Limits = limits(r, f.Wait, now)
	f.Details = f.details(r)
	return f
}

// jittered is a refusal's wait with up to a tenth more, at most 5s, so that callers who were told
// the same do not come back together. If nobody knows how long it will be, callers are to ask
// again in a minute.
func jittered(r *weir.Refusal) time.Duration {
	d := max(r.RetryAfter, time.Millisecond)
	if r.Endless() {
		d = time.Minute
	}
	return d + rand.N(min(d/10, 5*time.Second)+1)
}

// Ceil is d in units, rounded up: a wait must not be told as shorter than it is.
func Ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// Error makes Facts what an attempt may return.
func (f *Facts) Error() string { return f.Message }

// Outcome says nothing about the upstream.
func (f *Facts) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: f.Code, Unsent: true}
}

var _ outcome.Classifier = (*Facts)(nil)
