package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// A NotAccepted describes a request that was not stored. It contains no secrets.
type NotAccepted struct {
	Upstream    string
	Correlation string // ID of the call
	ID          string // ID that the delivery would have; "" if none was assigned
	Why         string // the reason, one of a few fixed labels
	Field       string // the invalid field; "" if there is none
	Err         error  // error of the queue, or the error in a message

	facts *refuse.Facts
}

// Reasons why a request was not stored.
const (
	notCredential = "credential"     // it contains a credential, which must not be stored
	notCondition  = "condition"      // its condition would be lost
	notRequest    = "request"        // it is invalid
	notToken      = "token"          // it could outlive its caller's token
	notDeclared   = "operation"      // its operation is not declared
	notSpoken     = "dialect"        // the dialect refuses it
	notSmall      = "body_too_large" // its body exceeds the size limit
	notWhole      = "body"           // its body broke off
	notHeld       = "memory"         // there was no memory for its body
	notFresh      = "key_reused"     // its key was used for another request
	notOver       = "under_way"      // another request under its key is in progress
	notRoomy      = "full"           // the deliveries' store is full
	notShared     = "share"          // its caller already stores its share
	notCertain    = "uncertain"      // weir does not know whether it was stored
	notThere      = "queue"          // the store does not respond
	notRouted     = "route"          // it was submitted by message, and no route delivers it later
	notRead       = "message"        // a message is not a request
	notSound      = "panic"          // it was submitted by message, and its handling panicked
)

// System reports whether the cause is weir itself and not the caller.
func (n *NotAccepted) System() bool { return n.facts != nil && n.facts.Fault == outcome.System }

func (n *NotAccepted) write(w http.ResponseWriter) {
	n.facts.RetryAfter(w.Header())
	n.facts.Write(w)
}

// badField returns a refusal because of an invalid field.
func badField(why, field, reason string) *NotAccepted {
	return &NotAccepted{Why: why, Field: field, facts: &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: field + ": " + reason,
		Details: map[string]any{"field": field, "reason": reason}, Final: true}}
}

// whyOfBody returns the reason why a body was refused.
func whyOfBody(f *refuse.Facts) string {
	switch f.Status {
	case http.StatusRequestEntityTooLarge:
		return notSmall
	case http.StatusServiceUnavailable:
		return notHeld
	}
	return notWhole
}

// notStored returns why the queue did not store a request, or may not have stored it.
func notStored(id string, err error) *NotAccepted {
	var field *delivery.FieldError
	switch {
	case errors.As(err, &field):
		n := badField(notRequest, field.Field, field.Reason)
		n.facts.Message = err.Error()
		return n
	case errors.Is(err, delivery.ErrKeyReused):
		return &NotAccepted{Why: notFresh, Field: "Idempotency-Key", facts: keyReused()}
	}
	n := &NotAccepted{Why: notThere, Err: err}
	message, why := "the request was not stored: ", "the deliveries' store does not answer"
	if errors.Is(err, delivery.ErrUncertain) || errors.Is(err, context.DeadlineExceeded) {
		n.Why, message = notCertain, "whether the request was stored is unknown; send it again with the same Idempotency-Key: "
	}
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, delivery.ErrShare):
		return &NotAccepted{Why: notShared, Err: err, facts: &refuse.Facts{Status: http.StatusTooManyRequests, Code: refuse.RateLimitExceeded, Wait: time.Minute,
			Message: "the request was not stored: this caller already stores half of all deliveries (deliveries.max_stored, max_size); it can store more when some of them are removed"}}
	case errors.Is(err, delivery.ErrFull):
		status, n.Why, why = http.StatusInsufficientStorage, notRoomy, "the deliveries' store is full"
	}
	if errors.Is(err, delivery.ErrUnavailable) {
		why = "deliveries are unavailable now, because their store cannot be opened"
	}
	n.facts = &refuse.Facts{Status: status, Code: refuse.ServiceUnavailable, Message: message + why, Details: map[string]any{"id": id}, Wait: time.Second, Fault: outcome.System}
	return n
}

func keyReused() *refuse.Facts {
	return &refuse.Facts{Status: http.StatusUnprocessableEntity, Code: "IDEMPOTENCY_KEY_REUSED", Message: "the Idempotency-Key was used for another request", Details: map[string]any{"field": "Idempotency-Key"}}
}

func refusal(w http.ResponseWriter, status int, code, message string, details map[string]any) {
	(&refuse.Facts{Status: status, Code: code, Message: message, Details: details}).Write(w)
}
