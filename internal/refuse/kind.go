package refuse

import (
	"net/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Kind says what an error of weir's own means to a caller, apart from how its dialect calls it.
type Kind string

const (
	Invalid     Kind = "invalid"     // the request
	Stranger    Kind = "stranger"    // nobody knows who calls
	TooLarge    Kind = "too_large"   // its body
	Limited     Kind = "limited"     // a rate; later it may go
	Exhausted   Kind = "exhausted"   // a quota, for the day or longer
	Unavailable Kind = "unavailable" // the upstream is not called at present
	GaveUp      Kind = "gave_up"     // it was tried often enough
	Timeout     Kind = "timeout"
)

// Kind is what dialects make their own codes of.
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

// FaultHeader says of an answer that is an error what can be done about it: an outcome.Fault.
const FaultHeader = "X-Weir-Fault"

// faults are the values of that header, which nobody writes to.
var faults = func() (all [len(outcome.Faults) + 1][]string) {
	for _, f := range outcome.Faults {
		all[f] = []string{f.String()}
	}
	return all
}()

// SetFault says it of an answer with a header, unless there is no fault.
func SetFault(h http.Header, f outcome.Fault) {
	if f != outcome.NoFault {
		h[FaultHeader] = faults[f]
	}
}

// fault is what can be done about an error of weir's own.
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
