package mcpdialect

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// reject returns the refusal of an invalid request.
func (x *exchange) reject(code int, text string) *refuse.Facts {
	x.code = code
	return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true, Message: text}
}

// A failure is the structured form of a refusal.
type failure struct {
	Type       string     `json:"type"`
	Limit      string     `json:"limit,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	Used       *int64     `json:"used,omitempty"`
	Of         *int64     `json:"of,omitempty"`
	RetryAfter int64      `json:"retry_after_ms,omitempty"`
	ResetsAt   *time.Time `json:"resets_at,omitempty"`
	Final      bool       `json:"final"`
	Message    string     `json:"message,omitempty"` // the text, for clients that show the model only the structured form
}

// Values of failure.Type for limits. Other refusals have their weir.Reason.
const (
	rateLimited = "rate_limited"
	budgetSpent = "budget_spent"
)

// newFailure returns the structured form of a refusal. It contains no keys, because they can name other callers.
func newFailure(f *refuse.Facts) failure {
	e := failure{
		Type: string(f.Reason), Final: f.Endless || f.Reason == weir.QuotaExhausted || f.Wait >= refuse.LongWait,
		RetryAfter: refuse.Ceil(f.Wait, time.Millisecond),
	}
	if len(f.Limits) == 0 {
		return e
	}
	if e.Type = rateLimited; e.Final {
		e.Type = budgetSpent
	}
	l := &f.Limits[0]
	used := l.Full - min(l.Left, l.Full)
	e.Limit, e.Scope, e.Used, e.Of, e.ResetsAt = l.Limit, l.Rule().Scope, &used, &l.Full, &l.ResetAt
	return e
}

// Refuse implements httpx.Exchange. A refused tool call gets a result, which clients show to the model. Other requests get a
// JSON-RPC error, and requests without messages the usual error.
func (x *exchange) Refuse(w http.ResponseWriter, f *refuse.Facts) {
	switch {
	case !x.post:
		f.Write(w)
	case f.Reason != "" && x.method == toolCall && x.id != nil:
		e := newFailure(f)
		e.Message = x.text(f, time.Now())
		result := map[string]any{
			"content":           []any{map[string]string{"type": "text", "text": e.Message}},
			"structuredContent": map[string]any{"error": e},
			"isError":           true,
		}
		if x.schemas.has(x.name) {
			delete(result, "structuredContent")
		}
		x.write(w, http.StatusOK, "result", result)
	default:
		x.write(w, f.Status, "error", x.rpcError(f))
	}
}

// rpcError returns the JSON-RPC error of a refusal.
func (x *exchange) rpcError(f *refuse.Facts) map[string]any {
	e := map[string]any{"code": invalidRequest, "message": f.Message}
	switch {
	case f.Reason != "":
		e["code"], e["message"], e["data"] = limited, x.text(f, time.Now()), newFailure(f)
	case x.code != 0:
		e["code"] = x.code
	case f.Status >= http.StatusInternalServerError:
		e["code"] = internalError
	}
	return e
}

// write writes a response with the ID of the request.
func (x *exchange) write(w http.ResponseWriter, status int, member string, value any) {
	id := x.id
	if id == nil {
		id = []byte("null")
	}
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values are strings and numbers
	}
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"`+member+`":`...)
	b = append(append(b, content...), '}')
	kind := "application/json"
	if status == http.StatusOK && x.onlyEvents() {
		kind = "text/event-stream"
		b = append(append([]byte("event: message\ndata: "), b...), "\n\n"...)
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// onlyEvents reports whether the caller accepts an event stream and no JSON.
func (x *exchange) onlyEvents() bool {
	events := false
	for kind := range strings.SplitSeq(strings.Join(x.accept, ","), ",") {
		switch kind, _, _ = mime.ParseMediaType(kind); kind {
		case "text/event-stream":
			events = true
		case "application/json", "application/*", "*/*":
			return false
		}
	}
	return events
}

// text returns the text for the model, of fewer than 300 characters: which limit refused the call, its used units, when more
// units are available, and what to do until then.
func (x *exchange) text(f *refuse.Facts, now time.Time) string {
	if len(f.Limits) == 0 {
		return fmt.Sprintf("%s is not available now: its server accepts no calls for %s. Go on without it, or say what is missing.", x.subject(x.own()), longer(f))
	}
	l, e := &f.Limits[0], newFailure(f)
	used := fmt.Sprintf("%s: %s of %s%s used", x.subject(l.Rule().Scope), amount(l, *e.Used), amount(l, *e.Of), per(l.Rule()))
	if l.Left > 0 {
		used += ", which leaves too little for this call"
	}
	switch {
	case f.Endless:
		return used + ". Do not call again: go on with what you have, or say what is missing."
	case e.Final:
		return fmt.Sprintf("%s; no more until %s. Do not call again: go on with what you have, or say what is missing.", used, end(l, now.Add(f.Wait)))
	}
	return fmt.Sprintf("%s; more in %s. Call again then, not earlier. Until then go on with other work.", used, seconds(f))
}

// end returns when a spent limit has units again, rounded up: the end of a calendar window, or another instant.
func end(l *refuse.Limit, at time.Time) string {
	if l.Rule().Shape == limit.Calendar {
		at = l.ResetAt
	}
	return at.Add(time.Minute - 1).UTC().Truncate(time.Minute).Format("2006-01-02 15:04 UTC")
}

// subject returns what a limit of the scope counts together, such as "Tool search" or "Tool search of this run".
func (x *exchange) subject(scope string) string {
	if scope == "" {
		return "All calls together"
	}
	what, whose := "", ""
	for _, name := range scopes.Names(scope) {
		switch {
		case name == Tool && x.method == toolCall:
			what = "Tool " + brief(x.name)
		case name == Method:
			what = "Method " + brief(x.method)
		case name == "run" || name == "session":
			whose = "this " + name
		}
	}
	switch {
	case what != "" && whose != "":
		return what + " of " + whose
	case what != "":
		return what
	case whose != "":
		return "T" + whose[1:]
	}
	return "Your limit"
}

// own returns the scope that describes the request best.
func (x *exchange) own() string {
	if x.method == toolCall {
		return Tool
	}
	return Method
}

// brief returns a name that the caller sent, or its beginning.
func brief(name string) string {
	if r := []rune(name); len(r) > 64 {
		return string(r[:64]) + "..."
	}
	return name
}

// amount returns an amount with its unit, unless that is calls.
func amount(l *refuse.Limit, n int64) string {
	if l.Unit == limit.USD {
		return "$" + limit.Dollars(n)
	}
	return strconv.FormatInt(n, 10)
}

// per returns what a limit counts, and its period: " calls a minute".
func per(l *limit.Limit) string {
	unit := " " + l.UnitName()
	switch l.UnitName() {
	case limit.Requests:
		unit = " calls"
	case limit.USD:
		unit = ""
	}
	if l.Shape == limit.Calendar {
		return unit + " a " + l.Every.String()
	}
	if l.Shape == limit.Bucket && l.Full() < l.Amount {
		return unit + " at a time" // a burst
	}
	switch l.Per {
	case time.Second:
		return unit + " a second"
	case time.Minute:
		return unit + " a minute"
	case time.Hour:
		return unit + " an hour"
	case 24 * time.Hour:
		return unit + " in 24 hours"
	}
	return unit + " in " + strings.TrimSuffix(strings.TrimSuffix(l.Per.String(), "0s"), "0m")
}

// seconds returns the wait of a refusal, rounded up.
func seconds(f *refuse.Facts) string {
	if f.Wait > 2*time.Minute {
		return strconv.FormatInt(refuse.Ceil(f.Wait, time.Minute), 10) + " min"
	}
	return f.Seconds() + " s"
}

// longer returns the wait of a refusal without a limit.
func longer(f *refuse.Facts) string {
	if f.Endless {
		return "an unknown time"
	}
	return seconds(f)
}
