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

// A NotAccepted is a request that was not stored. Nothing in it is secret.
type NotAccepted struct {
	Upstream    string
	Correlation string // id of the call
	ID          string // that the delivery would have; "" if it did not come so far
	Why         string // a label, of a fixed few: what was wrong
	Field       string // that is wrong; "" if it is none
	Err         error  // of the queue, or what is wrong with a message

	facts *refuse.Facts
}

// Why a request was not stored.
const (
	notCredential = "credential"     // it shows one, which is not stored
	notCondition  = "condition"      // its condition would not be kept
	notRequest    = "request"        // something about it is wrong
	notToken      = "token"          // it would outlive its caller's token
	notDeclared   = "operation"      // it is of no operation that is declared
	notSpoken     = "dialect"        // what the upstream speaks has no such request
	notSmall      = "body_too_large" // its body is larger than what is kept
	notWhole      = "body"           // its body broke off
	notHeld       = "memory"         // there was no room for its body
	notFresh      = "key_reused"     // its key was used for another request
	notOver       = "under_way"      // another request under its key is under way
	notRoomy      = "full"           // the deliveries' store is full
	notShared     = "share"          // its caller has as many stored as it may
	notCertain    = "uncertain"      // nobody knows whether it is stored
	notThere      = "queue"          // the queue does not answer
	notRouted     = "route"          // it was handed in by a message, and no route delivers it later
	notRead       = "message"        // a message is no request
	notSound      = "panic"          // it was handed in by a message, and weir panicked over it
)

// System reports whether it is weir's own fault.
func (n *NotAccepted) System() bool { return n.facts != nil && n.facts.Fault == outcome.System }

func (n *NotAccepted) write(w http.ResponseWriter) {
	n.facts.RetryAfter(w.Header())
	n.facts.Write(w)
}

// badField says what is wrong with a part of a request.
func badField(why, field, reason string) *NotAccepted {
	return &NotAccepted{Why: why, Field: field, facts: &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: field + ": " + reason,
		Details: map[string]any{"field": field, "reason": reason}, Final: true}}
}

// whyOfBody is why a body was not taken.
func whyOfBody(f *refuse.Facts) string {
	switch f.Status {
	case http.StatusRequestEntityTooLarge:
		return notSmall
	case http.StatusServiceUnavailable:
		return notHeld
	}
	return notWhole
}

// notStored says why the queue has not, or may not have, stored a request.
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
	n.facts = &refuse.Facts{Status: status, Code: refuse.ServiceUnavailable, Message: message + why, Details: map[string]any{"id": id}, Wait: time.Second, Fault: outcome.System}
	return n
}

func keyReused() *refuse.Facts {
	return &refuse.Facts{Status: http.StatusUnprocessableEntity, Code: "IDEMPOTENCY_KEY_REUSED", Message: "the Idempotency-Key was used for another request", Details: map[string]any{"field": "Idempotency-Key"}}
}

func refusal(w http.ResponseWriter, status int, code, message string, details map[string]any) {
	(&refuse.Facts{Status: status, Code: code, Message: message, Details: details}).Write(w)
}
