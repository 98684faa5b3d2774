package refuse

import (
	"net/http"

	"github.com/seed1158cd35/weir"
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
	case f.Reason.Unavailable():
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
