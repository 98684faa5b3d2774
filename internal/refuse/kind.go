package refuse

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Kind is the meaning of a weir error for a caller, independent of its dialect.
type Kind string

const (
	Invalid     Kind = "invalid"     // invalid request
	Stranger    Kind = "stranger"    // unknown caller
	TooLarge    Kind = "too_large"   // the body is too large
	Limited     Kind = "limited"     // a rate; retry later
	Exhausted   Kind = "exhausted"   // a quota of a day or longer
	Unavailable Kind = "unavailable" // the upstream is not called at present
	GaveUp      Kind = "gave_up"     // attempts are exhausted
	Timeout     Kind = "timeout"
)

// LongWait is the wait for a rate from which a caller should continue without the call. An agent would sleep until then.
const LongWait = 10 * time.Minute

// Kind returns the kind, from which dialects derive their codes.
func (f *Facts) Kind() Kind {
	switch {
	case f.Reason == weir.QuotaExhausted:
		return Exhausted
	case f.Reason != "" && f.Status == http.StatusServiceUnavailable:
		return Unavailable
	case f.Reason != "":
		return Limited
	}
	switch f.Status {
	case http.StatusRequestEntityTooLarge:
		return TooLarge
	case http.StatusGatewayTimeout:
		return Timeout
	case http.StatusUnauthorized:
		return Stranger
	case http.StatusServiceUnavailable:
		return Unavailable
	}
	if f.Status < http.StatusInternalServerError {
		return Invalid
	}
	return GaveUp
}

// FaultHeader contains an outcome.Fault, the remedy for an error.
const FaultHeader = "X-Weir-Fault"

// faults are the values of that header. They must not be modified.
var faults = func() (all [len(outcome.Faults) + 1][]string) {
	for _, f := range outcome.Faults {
		all[f] = []string{f.String()}
	}
	return all
}()

// SetFault sets the header, unless there is no fault.
func SetFault(h http.Header, f outcome.Fault) {
	if f != outcome.NoFault {
		h[FaultHeader] = faults[f]
	}
}

// fault returns the remedy for a weir error.
func (f *Facts) fault() outcome.Fault {
	switch {
	case f.Fault != outcome.NoFault:
		return f.Fault
	case f.Code == InternalError:
		return outcome.System
	case f.Code == RateLimitExceeded || f.Code == ServiceUnavailable || f.Reason != "":
		return outcome.Transient
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden || f.Status == http.StatusNotFound:
		return outcome.Permanent
	}
	return outcome.Validation
}
