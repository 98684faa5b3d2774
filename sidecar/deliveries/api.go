// Package deliveries implements /v1/deliveries. It shows submitted deliveries to the callers that submitted them and
// to operators. Operators also look through dead letters, redrive them and drop them.
package deliveries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// Path is the path of deliveries on the listeners of decisions and of operators.
const Path = "/v1/deliveries"

// A Queue is the part of delivery.Queue that the API uses.
type Queue interface {
	Get(ctx context.Context, id string) (delivery.Delivery, error)
	Attempts(ctx context.Context, id string) ([]delivery.Attempt, error)
	List(ctx context.Context, f delivery.Filter, cursor string, most int) ([]delivery.Delivery, string, error)
	Redrive(ctx context.Context, f delivery.Filter, most int) (int, error)
	Drop(ctx context.Context, f delivery.Filter, most int) (int, error)
}

// A Caller is the sender of a request. It sees deliveries submitted under its name. It also sees deliveries without
// an owner, by their IDs, which cannot be guessed.
type Caller struct {
	Name     string
	Operator bool // sees everything
}

// may reports whether the caller may see a delivery.
func (c Caller) may(d *delivery.Delivery) bool {
	return c.Operator || d.Owner == "" || d.Owner == c.Name
}

// An API serves the deliveries of a queue.
type API struct{ Queue Queue }

// patience is the timeout of queue calls. Reading a long list delays the truncation of the queue's log.
const patience = 5 * time.Second

// A request is a request in progress.
type request struct {
	*http.Request
	queue Queue
	who   Caller
}

// Serve answers a request of a caller. rest is the path after Path.
func (a API) Serve(w http.ResponseWriter, r *http.Request, rest string, who Caller) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	q := request{r.WithContext(ctx), a.Queue, who}
	body, f := q.answer(strings.Trim(rest, "/"))
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if f != nil {
		if f.Status == http.StatusMethodNotAllowed {
			h.Set("Allow", f.Details["allow"].(string))
		}
		if f.Wait > 0 {
			h.Set("Retry-After", f.Seconds())
		}
		f.Write(w)
		return
	}
	h.Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (q *request) answer(rest string) (any, *refuse.Facts) {
	id, do, _ := strings.Cut(rest, "/")
	change := id == redrive || id == drop
	switch {
	case rest == "":
		return q.by(q.list, http.MethodGet, http.MethodHead)
	case do == "" && change:
		return q.by(func() (any, *refuse.Facts) { return q.changeAll(id) }, http.MethodPost)
	case do == "":
		return q.by(func() (any, *refuse.Facts) { return q.show(id) }, http.MethodGet, http.MethodHead)
	case do == redrive || do == drop:
		return q.by(func() (any, *refuse.Facts) { return q.changeOne(id, do) }, http.MethodPost)
	}
	return nil, refused(http.StatusNotFound, refuse.NotFound, "unknown path; want %s, %s/ID, %s/ID/redrive or %s/ID/drop", Path, Path, Path, Path)
}

// by answers requests with the given methods.
func (q *request) by(answer func() (any, *refuse.Facts), methods ...string) (any, *refuse.Facts) {
	for _, m := range methods {
		if q.Method == m {
			return answer()
		}
	}
	f := refused(http.StatusMethodNotAllowed, refuse.ValidationError, "method %s: want %s", doc.Quote(q.Method), methods[0])
	f.Details = map[string]any{"allow": strings.Join(methods, ", ")}
	return nil, f
}

// show returns a delivery with all attempts.
func (q *request) show(id string) (any, *refuse.Facts) {
	d, f := q.get(id)
	if f != nil {
		return nil, f
	}
	attempts, err := q.queue.Attempts(q.Context(), id)
	if err != nil {
		return nil, q.failed(err)
	}
	return wholeOf(&d, attempts), nil
}

// get returns a delivery that the caller may see. Deliveries of other callers are reported as not found.
func (q *request) get(id string) (delivery.Delivery, *refuse.Facts) {
	d, err := q.queue.Get(q.Context(), id)
	if err == nil && !q.who.may(&d) {
		err = delivery.ErrNotFound
	}
	if err != nil {
		return d, q.failed(err)
	}
	return d, nil
}

// failed returns the response to an error of the queue.
func (q *request) failed(err error) *refuse.Facts {
	var field *delivery.FieldError
	switch {
	case errors.Is(err, delivery.ErrNotFound):
		return refused(http.StatusNotFound, deliveryNotFound, "unknown delivery; weir removes completed deliveries after deliveries.keep, and dead letters after 30 days")
	case errors.Is(err, delivery.ErrCursor):
		return bad("cursor", "does not belong to this list: use it with the same filter, or start without a cursor")
	case errors.As(err, &field):
		return bad(field.Field, field.Reason)
	}
	f := refused(http.StatusServiceUnavailable, refuse.ServiceUnavailable, "the deliveries' store does not answer")
	if q.Context().Err() != nil {
		f.Message = fmt.Sprintf("the deliveries' store did not answer within %v; use a narrower filter", patience)
	}
	f.Wait = time.Second
	return f
}

// Error codes that only deliveries have.
const (
	deliveryNotFound = "DELIVERY_NOT_FOUND"
	conflicting      = "CONFLICT"
)

func refused(status int, code, format string, args ...any) *refuse.Facts {
	return &refuse.Facts{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// bad returns the response to an invalid part of a request.
func bad(field, reason string) *refuse.Facts {
	f := refused(http.StatusBadRequest, refuse.ValidationError, "%s: %s", field, reason)
	f.Details = map[string]any{"field": field, "reason": reason}
	return f
}
