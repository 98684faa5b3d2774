package refuse

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// Headers of refusals in addition to the headers of HTTP.
const (
	RefusedHeader = "X-Weir-Refused" // a weir.Reason: why weir did not send the request
	placeHeader   = "X-Weir-Place"   // position of a call that waited without success: "3 of 40"
)

// Header sets the headers of a weir error: the reason, the remaining units, and the time to retry.
func (f *Facts) Header(h http.Header) {
	SetFault(h, f.fault())
	if f.Reason != "" {
		h.Set(RefusedHeader, string(f.Reason))
	}
	policy, level := f.Fields()
	if policy != "" {
		h.Set("RateLimit-Policy", policy)
	}
	if level != "" {
		h.Set("RateLimit", level)
	}
	if b := f.budgets(); b != "" {
		h.Set(BudgetHeader, b)
	}
	if f.Place > 0 {
		h.Set(placeHeader, fmt.Sprintf("%d of %d", f.Place, f.Waiting))
	}
	f.RetryAfter(h)
}

// RetryAfter sets the time to retry, if it is known: in seconds, rounded up because RFC 9110 10.2.3 has no fractions, and in
// milliseconds.
func (f *Facts) RetryAfter(h http.Header) {
	if f.Wait > 0 {
		h.Set("Retry-After", f.Seconds())
		h.Set("Retry-After-Ms", strconv.FormatInt(Ceil(f.Wait, time.Millisecond), 10))
	}
}

// Seconds returns the value of Retry-After.
func (f *Facts) Seconds() string { return strconv.FormatInt(Ceil(f.Wait, time.Second), 10) }

// Write sends the error as JSON. The caller must set the headers of Header before.
func (f *Facts) Write(w http.ResponseWriter) {
	held := bodies.Get().(*[]byte)
	b := append(f.append((*held)[:0]), '\n')
	SetFault(w.Header(), f.fault())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(f.Status)
	_, _ = w.Write(b)
	if cap(b) <= 4096 {
		*held = b
		bodies.Put(held)
	}
}

// bodies are reusable buffers for responses.
var bodies = sync.Pool{New: func() any { return new(make([]byte, 0, 1024)) }}

// details returns the details of a refusal.
func (f *Facts) details(r *weir.Refusal) map[string]any {
	d := map[string]any{"upstream": r.Upstream, "operation": r.Operation, "reason": r.Reason, "retry_after_ms": Ceil(f.Wait, time.Millisecond)}
	if len(f.Limits) > 0 {
		d["limit"], d["remaining"], d["reset_at"] = r.Limit, f.Limits[0].Left, f.Limits[0].ResetAt
		d["limits"] = f.Limits
	} else if r.Reason == weir.Paused || r.Reason == weir.QuotaExhausted { // by a hint that does not name its limit
		d["remaining"] = 0
		if r.Pool != "" {
			d["pool"] = r.Pool
		}
		if at := r.ResetAt(); !at.IsZero() {
			d["reset_at"] = at.UTC()
		}
	}
	if r.Want.Lack != limit.LacksNothing {
		d["store"], d["store_reason"] = r.Want.State.String(), r.Want.Lack.Word()
		d["lack"] = d["store_reason"] // former name, until 0.2.0
	}
	if r.Bound > 0 {
		d["in_flight"], d["bound"] = r.InFlight, r.Bound
	}
	if r.Place > 0 {
		d["place"], d["waiting"] = r.Place, r.Waiting
	}
	return d
}
