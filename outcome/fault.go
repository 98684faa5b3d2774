package outcome

import "strings"

// A Fault is the kind of an attempt's error, which determines the remedy. It follows from the class and the code, see
// docs/reference/classification.md.
type Fault uint8

const (
	NoFault    Fault = iota // no error, or the caller left
	Transient               // temporary: throttled, failed or unknown
	Permanent               // the upstream would give the same answer again to a well-formed request: 401, 403, 404, 409
	Validation              // the request itself is wrong
	System                  // weir or the program cannot make the request, for instance without credentials, and needs repair
)

// Faults lists every kind of error, in order, for tables and metrics.
var Faults = [...]Fault{Transient, Permanent, Validation, System}

var faultNames = [...]string{"", "transient", "permanent", "validation", "system"}

// String returns the name in metrics, logs and headers, "" for NoFault and unknown values.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return ""
}

// InternalError is the code of an attempt that failed because of weir or the program, not because of the upstream.
const InternalError = "INTERNAL_SERVER_ERROR"

// Fault returns the kind of the error.
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

// invalid reports whether a code means that a request is wrong: statuses of RFC 9110, and error codes of Google, OpenAI,
// Anthropic and AWS. AWS codes for credentials begin in the same way and are excluded.
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
