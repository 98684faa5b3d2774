package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// Headers with which weir marks its own responses and reports what it did.
const (
	RefusedHeader  = refuse.RefusedHeader // why weir did not send the request: a weir.Reason
	errorHeader    = "X-Weir-Error"       // another reason why there is no upstream response
	GaveUpHeader   = "X-Weir-Gave-Up"     // why weir made no further attempt
	AttemptsHeader = "X-Weir-Attempts"    // the number of attempts, if it is not 1
)

// respond sends an error of weir in the caller's protocol.
func respond(w http.ResponseWriter, r *http.Request, f *refuse.Facts) {
	f.Header(w.Header())
	if t, ok := r.Context().Value(tripKey{}).(*trip); ok {
		t.said, t.refusedBy = f.Status, string(f.Reason)
		if len(f.Limits) > 0 {
			t.refusedBy = f.Limits[0].Rule().Name
		}
		if t.exchange != nil {
			t.exchange.Refuse(w, f)
			return
		}
	}
	f.Write(w)
}

// reason returns why weir made no further attempt.
func reason(why error) string {
	if refusal, ok := errors.AsType[*weir.Refusal](why); ok {
		return string(refusal.Reason)
	}
	return why.Error()
}

// markRefused records in the upstream's last response that weir refused another attempt, and for how long, unless the
// upstream requests a longer wait.
func markRefused(h http.Header, why error, said outcome.Hint) {
	refusal, ok := errors.AsType[*weir.Refusal](why)
	if !ok {
		return
	}
	f := refuse.Of(refusal, time.Now())
	h.Set(RefusedHeader, string(f.Reason))
	if !said.Said || said.After < f.Wait {
		classify.RemoveWaits(h) // the upstream's
		f.RetryAfter(h)
	}
}

// fail answers a request for which there is no upstream response.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *weir.Refusal
	var own *refuse.Facts
	var tooLarge *http.MaxBytesError
	gaveUp, sent := errors.AsType[*retry.GaveUpError](err)
	h := w.Header()
	if id := correlation(r.Context()); id != "" {
		h[httpx.CorrelationHeader] = []string{id}
	}
	if sent {
		h.Set(AttemptsHeader, strconv.Itoa(gaveUp.Attempts))
		h.Set("X-Should-Retry", "false")
	}
	switch {
	case impatient(r.Context()):
		respond(w, r, &refuse.Facts{Status: http.StatusGatewayTimeout, Code: refuse.ServiceUnavailable, Final: true, Message: "the upstream did not respond before the caller's deadline"})
	case r.Context().Err() != nil: // the caller has disconnected
		if r.Context().Value(http.ServerContextKey) != nil {
			panic(http.ErrAbortHandler)
		}
	case errors.As(err, &refusal):
		respond(w, r, refuse.Of(refusal, time.Now()))
	case errors.As(err, &own):
		respond(w, r, own)
	case errors.As(err, &tooLarge):
		respond(w, r, &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true,
			Message: fmt.Sprintf("the body is larger than %d bytes, the most that weir accepts (max_body)", tooLarge.Limit)})
	case errors.Is(err, httpx.ErrNoRoom):
		h.Del(AttemptsHeader)
		h.Set("Connection", "close") // the rest of the body is not read
		respond(w, r, noRoom(err))
	case errors.Is(err, httpx.ErrRequestBody):
		h.Del(AttemptsHeader)
		if r.ProtoMajor == 1 {
			h.Set("Connection", "close") // the start of the next request is unknown
		}
		respond(w, r, httpx.BrokenBody(err))
	case errors.Is(err, httpx.ErrInvalidRequest):
		h.Del(AttemptsHeader)
		respond(w, r, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true,
			Message: "the request cannot be sent to the upstream: its method, URL or headers are invalid in HTTP, or larger than the upstream accepts"})
	case errors.Is(err, weir.ErrTooMuch):
		respond(w, r, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true, Message: err.Error()})
	default:
		unreachable(w, r, err, gaveUp)
	}
}

// noRoom returns the refusal of a request whose body does not fit into memory.
func noRoom(err error) *refuse.Facts {
	if errors.Is(err, httpx.ErrNeverRoom) {
		return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true, Message: "the body is larger than weir's memory for bodies, and weir must keep it to call this upstream"}
	}
	return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "the body was not sent: weir's memory for bodies is full"}
}

// unreachable reports that the upstream did not respond. The error's text may contain the upstream's address, which
// belongs in the log only.
func unreachable(w http.ResponseWriter, r *http.Request, err error, gaveUp *retry.GaveUpError) {
	f := &refuse.Facts{Status: http.StatusBadGateway, Code: refuse.ServiceUnavailable, Message: "the upstream did not respond", Final: true, Details: map[string]any{}}
	if gaveUp != nil {
		f.Details["attempts"], f.Details["cause"] = gaveUp.Attempts, gaveUp.Outcome.Code
		if gaveUp.Why != nil {
			f.Details["why"] = gaveUp.Why.Error()
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		f.Status, f.Message = http.StatusGatewayTimeout, "the upstream did not respond in time"
	}
	w.Header().Set(errorHeader, "no answer")
	w.Header().Set("X-Should-Retry", "false")
	respond(w, r, f)
}
