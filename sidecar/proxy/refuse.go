package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// The headers with which weir says that an answer is its own, or what it did.
const (
	RefusedHeader  = "X-Weir-Refused"  // why weir did not send the request: a weir.Reason
	ErrorHeader    = "X-Weir-Error"    // what else kept weir from bringing an answer
	GaveUpHeader   = "X-Weir-Gave-Up"  // why there was no other attempt
	AttemptsHeader = "X-Weir-Attempts" // how many were made, if not one
	PlaceHeader    = "X-Weir-Place"    // where a call stood in line that waited in vain: "3 of 40"
)

// The codes of weir's own errors.
const (
	ValidationError    = "VALIDATION_ERROR"
	RateLimitExceeded  = "RATE_LIMIT_EXCEEDED"
	ServiceUnavailable = "SERVICE_UNAVAILABLE"
	InternalError      = "INTERNAL_SERVER_ERROR"
)

// write answers with the failure in the words that the caller understands.
func (f *Failure) write(w http.ResponseWriter, r *http.Request) {
	if t, ok := r.Context().Value(tripKey{}).(*trip); ok && t.exchange != nil {
		t.exchange.Refuse(w, f)
		return
	}
	f.WriteJSON(w)
}

// WriteJSON answers with {"error":{"code","message","details"}}.
func (f *Failure) WriteJSON(w http.ResponseWriter) {
	type body struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details,omitempty"`
	}
	b, _ := json.Marshal(map[string]body{"error": {f.Code, f.Message, f.Details}})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(f.Status)
	_, _ = w.Write(append(b, '\n'))
}

// refuse answers a request that weir did not send on.
func refuse(w http.ResponseWriter, req *http.Request, r *weir.Refusal) {
	wait := jittered(r.RetryAfter)
	said := *r
	if r.RetryAfter <= endless {
		said.RetryAfter = wait // one number everywhere
	}
	f := &Failure{Status: http.StatusTooManyRequests, Code: RateLimitExceeded, Message: said.Error(), Reason: r.Reason, RetryAfter: wait, Details: map[string]any{
		"upstream": r.Upstream, "operation": r.Operation, "reason": r.Reason, "retry_after_ms": ceil(wait, time.Millisecond),
	}}
	if r.Reason.Unavailable() {
		f.Status, f.Code = http.StatusServiceUnavailable, ServiceUnavailable
	}
	h := w.Header()
	h.Set(RefusedHeader, string(r.Reason))
	if r.Limit != "" {
		left := remains(r, time.Now())
		f.Details["limit"], f.Details["remaining"], f.Details["reset_at"] = r.Limit, left[0].Left, left[0].ResetAt
		f.Details["limits"] = left
		rateLimitFields(h, left)
	} else if r.Reason == weir.Paused || r.Reason == weir.QuotaExhausted { // by a hint, of nobody knows which limit
		f.Details["remaining"] = 0
		if r.Pool != "" {
			f.Details["pool"] = r.Pool
			h.Set("RateLimit", fmt.Sprintf(`"upstream";r=0;t=%d`, ceil(wait, time.Second)))
		}
		if at := r.ResetAt(); !at.IsZero() {
			f.Details["reset_at"] = at.UTC()
		}
	}
	if r.Want.Lack != limit.LacksNothing {
		f.Details["store"], f.Details["lack"] = r.Want.State.String(), r.Want.Lack.Word()
	}
	if r.Bound > 0 {
		f.Details["in_flight"], f.Details["bound"] = r.InFlight, r.Bound
	}
	if r.Place > 0 {
		h.Set(PlaceHeader, fmt.Sprintf("%d of %d", r.Place, r.Waiting))
		f.Details["place"], f.Details["waiting"] = r.Place, r.Waiting
	}
	retryAfter(h, wait)
	f.write(w, req)
}

// reason is why there was no other attempt.
func reason(why error) string {
	if refusal, ok := errors.AsType[*weir.Refusal](why); ok {
		return string(refusal.Reason)
	}
	return why.Error()
}

// markRefused says on the upstream's last answer that weir has refused another attempt, and
// for how long, unless the upstream itself asks for a longer wait.
func markRefused(h http.Header, why error, said outcome.Hint) {
	refusal, ok := errors.AsType[*weir.Refusal](why)
	if !ok {
		return
	}
	h.Set(RefusedHeader, string(refusal.Reason))
	if wait := jittered(refusal.RetryAfter); !said.Said || said.After < wait {
		for _, f := range waitFields { // the upstream's own
			h.Del(f.name)
		}
		retryAfter(h, wait)
	}
}

// endless is longer than any limit or hint asks for: only a breaker that is held
// open by hand, for as long as it may take, does.
const endless = 367 * 24 * time.Hour

// jittered is a wait with up to a tenth more, at most 5s, so that callers who
// were told the same do not come back together. If nobody knows how long it will
// be, callers are to ask again in a minute.
func jittered(d time.Duration) time.Duration {
	if d = max(d, 0); d > endless {
		d = time.Minute
	}
	return d + rand.N(min(d/10, 5*time.Second)+1)
}

// retryAfter tells a caller when to come back: in seconds, rounded up as
// RFC 9110 10.2.3 has no fractions, and in milliseconds for those who read them.
func retryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(ceil(d, time.Second), 10))
	h.Set("Retry-After-Ms", strconv.FormatInt(ceil(d, time.Millisecond), 10))
}

// ceil is d in units, rounded up. A wait must not be told as shorter than it is.
func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// quoted is a structured field string (RFC 8941 3.3.3).
func quoted(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '_')
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// fail answers a request that brought no answer from the upstream.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *weir.Refusal
	var own *Failure
	var tooLarge *http.MaxBytesError
	gaveUp, sent := errors.AsType[*retry.GaveUpError](err)
	h := w.Header()
	if id := correlation(r.Context()); id != "" {
		h[CorrelationHeader] = []string{id}
	}
	if sent {
		h.Set(AttemptsHeader, strconv.Itoa(gaveUp.Attempts))
		h.Set("X-Should-Retry", "false")
	}
	switch {
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the caller has left
	case errors.As(err, &refusal):
		refuse(w, r, refusal)
	case errors.As(err, &own):
		own.write(w, r)
	case errors.As(err, &tooLarge):
		(&Failure{Status: http.StatusRequestEntityTooLarge, Code: ValidationError, Final: true,
			Message: fmt.Sprintf("the body is larger than %d bytes, the most that is taken here (max_body)", tooLarge.Limit)}).write(w, r)
	case errors.Is(err, weir.ErrNoRoom):
		h.Del(AttemptsHeader)
		h.Set("Connection", "close") // the rest of the body is not read
		f := noRoom(err)
		if f.RetryAfter > 0 {
			retryAfter(h, f.RetryAfter)
		}
		f.write(w, r)
	case errors.Is(err, weir.ErrRequestBody):
		h.Del(AttemptsHeader)
		if r.ProtoMajor == 1 {
			h.Set("Connection", "close") // nobody knows where the next request begins
		}
		BrokenBody(err).write(w, r)
	case errors.Is(err, weir.ErrTooMuch):
		(&Failure{Status: http.StatusBadRequest, Code: ValidationError, Final: true, Message: err.Error()}).write(w, r)
	default:
		unreachable(w, r, err, gaveUp)
	}
}

// BrokenBody is the failure of a request whose body could not be read to its end.
func BrokenBody(err error) *Failure {
	f := &Failure{Status: http.StatusBadRequest, Code: ValidationError, Final: true, Message: "the body could not be read to its end: it is cut off, or its chunks are not as HTTP has them"}
	if errors.Is(err, weir.ErrRequestStalled) || errors.Is(err, weir.ErrRequestSlow) || errors.Is(err, weir.ErrBodyTimeout) {
		f.Status, f.Message = http.StatusRequestTimeout, "the body could not be read to its end: it did not come in time ("+bodyTimeout(err)+")"
	}
	return f
}

// noRoom is the failure of a request whose body could not be kept.
func noRoom(err error) *Failure {
	if errors.Is(err, weir.ErrNeverRoom) {
		return &Failure{Status: http.StatusRequestEntityTooLarge, Code: ValidationError, Final: true, Message: "the body is larger than what weir may hold in memory, and the upstream takes only what can be sent again (full: refuse)"}
	}
	return &Failure{Status: http.StatusServiceUnavailable, Code: ServiceUnavailable, RetryAfter: time.Second, Message: "the body was not sent: what weir may hold in memory is full (full: refuse)"}
}

// bodyTimeout is the setting by which a body came too late.
func bodyTimeout(err error) string {
	for _, t := range [...]struct {
		cause error
		name  string
	}{
		{weir.ErrCallTimeout, "timeouts.call"}, {weir.ErrAttemptTimeout, "timeouts.attempt"},
		{weir.ErrBodyTimeout, "timeouts.body"}, {weir.ErrRequestSlow, "timeouts.upload_rate"},
	} {
		if errors.Is(err, t.cause) {
			return t.name
		}
	}
	return "timeouts.upload_idle"
}

// unreachable says that the upstream gave no answer. The error's text may hold
// the upstream's address, which is for the log alone.
func unreachable(w http.ResponseWriter, r *http.Request, err error, gaveUp *retry.GaveUpError) {
	f := &Failure{Status: http.StatusBadGateway, Code: ServiceUnavailable, Message: "the upstream gave no answer", Final: true, Details: map[string]any{}}
	if gaveUp != nil {
		f.Details["attempts"], f.Details["cause"] = gaveUp.Attempts, gaveUp.Outcome.Code
		if gaveUp.Why != nil {
			f.Details["why"] = gaveUp.Why.Error()
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		f.Status, f.Message = http.StatusGatewayTimeout, "the upstream did not answer in time"
	}
	w.Header().Set(ErrorHeader, "no answer")
	w.Header().Set("X-Should-Retry", "false")
	f.write(w, r)
}
