package decide

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
)

// The codes of errors.
const (
	ValidationError    = "VALIDATION_ERROR"
	Unauthorized       = "UNAUTHORIZED"
	Forbidden          = "FORBIDDEN"
	NotFound           = "NOT_FOUND"
	RateLimitExceeded  = "RATE_LIMIT_EXCEEDED"
	InternalError      = "INTERNAL_SERVER_ERROR"
	ServiceUnavailable = "SERVICE_UNAVAILABLE"
)

// Reasons of this API for which there is no permit, beside those of the gates.
const (
	TooManyPermits weir.Reason = "too_many_permits"
	ShuttingDown               = weir.ShuttingDown // also of an acquire that had not begun to wait
	Undecided      weir.Reason = "undecided"       // a gate could not say
	Waiting        weir.Reason = "waiting"         // another acquire with the same id is
	TooManyWaiting weir.Reason = "too_many_waiting"
	TooManyKeys    weir.Reason = "too_many_keys"
)

// A failure is an answer that is none of what was asked for.
type failure struct {
	status  int
	code    string
	message string
	details map[string]any
	after   time.Duration // when to come back; 0 means that it is not said
}

func failed(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// write sends {"error":{"code","message","details"}}.
func (f *failure) write(w http.ResponseWriter) {
	type body struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	if f.details == nil {
		f.details = map[string]any{}
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(ceil(f.after, time.Second), 10))
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	send(w, f.status, map[string]body{"error": {f.code, f.message, f.details}})
}

// send writes a body of JSON.
func send(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Errorf("an answer that is no JSON: %w", err))
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// ceil is d in units, rounded up. A wait must not be told as shorter than it is.
func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
