package outcome

import "strings"

// A Fault says of what kind the error is with which an attempt ended: what can be done about it. It follows from the
// class and the code, see docs/reference/classification.md.
type Fault uint8

const (
	NoFault    Fault = iota // there is no error, or its caller left
	Transient               // it passes by itself: throttled, failed or unknown
	Permanent               // the upstream would say the same again, of a request that is well formed: 401, 403, 404, 409
	Validation              // the request itself is wrong
	System                  // this side is: it lacks what it needs, such as credentials. Somebody has to mend it
)

// Faults lists every kind of error, in order, for tables and metrics.
var Faults = [...]Fault{Transient, Permanent, Validation, System}

var faultNames = [...]string{"", "transient", "permanent", "validation", "system"}

// String is the short word, as in metrics, logs and headers; "" for NoFault, and for one that there is not.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return ""
}

// InternalError is the code of an attempt that this side could not make, and is to blame for.
const InternalError = "INTERNAL_SERVER_ERROR"

// Fault is of what kind the error is.
func (o *Outcome) Fault() Fault {
	switch o.Class {
	case OK, Canceled:
		return NoFault
	case Rejected:
	default:
		return Transient
	}
	switch {
	case o.Unsent && o.Code == InternalError:
		return System
	case invalid(o.Code):
		return Validation
	}
	return Permanent
}

// invalid reports whether a code says that a request is wrong: by the statuses of RFC 9110 that say so, and the words of
// Google's APIs, OpenAI's and Anthropic's, and AWS'. Codes of credentials begin like those of AWS, and are none.
func invalid(code string) bool {
	switch code {
	case "400", "411", "413", "414", "415", "416", "417", "422", "428", "431",
		"INVALID_ARGUMENT", "OUT_OF_RANGE", "invalid_request_error", "body_too_large", "request_too_large", "invalid request":
		return true
	case "InvalidAccessKeyId", "InvalidClientTokenId", "InvalidIdentityToken", "InvalidSecurity", "InvalidSignatureException", "InvalidToken", "MissingAuthenticationToken", "MissingAuthenticationTokenException":
		return false
	}
	for _, begin := range [...]string{"VALIDATION_", "Validation", "Invalid", "Malformed", "Missing"} {
		if strings.HasPrefix(code, begin) {
			return true
		}
	}
	return false
}
