// Package refuse renders refusals: the information for the caller of a call that weir did not make. HTTP, the decision API,
// Envoy, gRPC and the dialects of providers all render the same [Facts], so that status, wait and reason agree.
package refuse

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Codes of errors that weir reports.
const (
	ValidationError    = "VALIDATION_ERROR"
	Unauthorized       = "UNAUTHORIZED"
	Forbidden          = "FORBIDDEN"
	NotFound           = "NOT_FOUND"
	RateLimitExceeded  = "RATE_LIMIT_EXCEEDED"
	ServiceUnavailable = "SERVICE_UNAVAILABLE"
	InternalError      = outcome.InternalError
)

// Facts describe an error of weir to the caller: the call was not sent, or no response arrived. Of creates the Facts of a
// refusal.
type Facts struct {
	Status  int            // of HTTP
	Code    string         // one of the codes above
	Message string         // without secrets and addresses
	Details map[string]any // for clients that parse JSON

	Fault   outcome.Fault // possible remedy; NoFault means that it follows from the code
	Missing string        // the scope of callers for which the request has no value, if that is required
	Reason  weir.Reason   // why a gate refused the call; "" for other errors
	Wait    time.Duration // time until a retry, at least 1 ms for a refusal; 0 if unknown
	Endless bool          // the end is unknown; Wait is then the time until the next try
	Final   bool          // attempts are exhausted: the caller should not retry

	Limits         []Limit // levels of the call's limits, first the limit that refused; empty if no limit did
	Pool           string  // the pool that an upstream's hint pauses, if no limit refused
	Place, Waiting int     // position in the queue and its length; 0 without a queue
}

// Of returns the Facts of a refusal. It draws the random wait once, so that all renderings contain the same.
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
		said.RetryAfter = f.Wait // the same wait in all renderings
	}
	f.Message = said.Error()
	f.Limits = limits(r, f.Wait, now)
	f.Details = f.details(r)
	return f
}

// jittered returns a refusal's wait with a random addition of up to a tenth, at most 5s, so that refused callers do not return
// simultaneously. If the end is unknown, callers retry after a minute.
func jittered(r *weir.Refusal) time.Duration {
	d := max(r.RetryAfter, time.Millisecond)
	if r.Endless() {
		d = time.Minute
	}
	return d + rand.N(min(d/10, 5*time.Second)+1)
}

// Ceil returns d in units, rounded up, because a reported wait must not be too short.
func Ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// Error lets an attempt return Facts as its error.
func (f *Facts) Error() string { return f.Message }

// Outcome returns an outcome that has no meaning for the upstream's state.
func (f *Facts) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: f.Code, Unsent: true}
}

var _ outcome.Classifier = (*Facts)(nil)
