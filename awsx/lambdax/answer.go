package lambdax

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/retry"
)

// A Code is the error code in a response, for programs.
type Code string

const (
	ValidationError      Code = refuse.ValidationError
	Unauthorized         Code = refuse.Unauthorized
	Forbidden            Code = refuse.Forbidden
	NotFound             Code = refuse.NotFound
	MessageNotFound      Code = "MESSAGE_NOT_FOUND"
	DeliveryNotFound     Code = "DELIVERY_NOT_FOUND"
	Conflict             Code = "CONFLICT"
	IdempotencyKeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	RateLimitExceeded    Code = refuse.RateLimitExceeded
	InternalServerError  Code = refuse.InternalError
	ServiceUnavailable   Code = refuse.ServiceUnavailable
)

var statuses = map[Code]int{
	ValidationError: http.StatusBadRequest, Unauthorized: http.StatusUnauthorized, Forbidden: http.StatusForbidden,
	NotFound: http.StatusNotFound, MessageNotFound: http.StatusNotFound, DeliveryNotFound: http.StatusNotFound,
	Conflict: http.StatusConflict, IdempotencyKeyReused: http.StatusUnprocessableEntity, RateLimitExceeded: http.StatusTooManyRequests,
	InternalServerError: http.StatusInternalServerError, ServiceUnavailable: http.StatusServiceUnavailable,
}

// Status returns the HTTP status of the code, 500 for an unknown code.
func (c Code) Status() int {
	if s := statuses[c]; s != 0 {
		return s
	}
	return http.StatusInternalServerError
}

// An Error is an error that a handler returns for a request. If its Code is InternalServerError or unknown, the caller only gets
// the correlation ID.
type Error struct {
	Code    Code
	Message string        // for the caller
	Field   string        // the invalid field of the request; "" if none is
	Reason  string        // what is wrong with the field
	Wait    time.Duration // delay before a retry; 0 if unknown
	Err     error         // for the log; may be nil
}

// Invalid returns the error of a request with one invalid field.
func Invalid(field, reason string) *Error {
	return &Error{Code: ValidationError, Message: field + ": " + reason, Field: field, Reason: reason}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return string(e.Code) + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) facts() *refuse.Facts {
	f := &refuse.Facts{Status: e.Code.Status(), Code: string(e.Code), Message: e.Message, Details: map[string]any{}, Wait: e.Wait}
	if e.Field != "" {
		f.Details["field"] = e.Field
	}
	if e.Reason != "" {
		f.Details["reason"] = e.Reason
	}
	return f
}

// factsOf returns what the caller receives about an error.
func factsOf(err error, correlation string) *refuse.Facts {
	own, _ := errors.AsType[*Error](err)
	refusal, _ := errors.AsType[*weir.Refusal](err)
	_, gaveUp := errors.AsType[*retry.GaveUpError](err)
	large, _ := errors.AsType[*http.MaxBytesError](err)
	switch {
	case own != nil && own.Code.Status() != http.StatusInternalServerError:
		return own.facts()
	case own != nil:
	case refusal != nil:
		return refuse.Of(refusal, time.Now())
	case large != nil:
		return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Message: fmt.Sprintf("the body is larger than %d bytes", large.Limit)}
	case gaveUp:
		return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Message: "a service that the request needs did not respond"}
	case errors.Is(err, context.DeadlineExceeded):
		return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Message: "it ran out of time"}
	}
	return &refuse.Facts{
		Status: http.StatusInternalServerError, Code: refuse.InternalError, Message: "internal error",
		Details: map[string]any{"correlation_id": correlation},
	}
}
