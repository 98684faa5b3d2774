package deliveries

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// Actions on deliveries.
const (
	redrive = "redrive"
	drop    = "drop"
)

// An Order selects the deliveries for an action.
type Order struct {
	Choice
	All  bool `json:"all,omitempty"`  // allows an empty choice, which means all deliveries
	Most int  `json:"most,omitempty"` // number of deliveries; 0 means 100

	// TokenEnded also redrives deliveries whose callers' tokens have expired. They are sent with weir's own
	// credentials.
	TokenEnded bool `json:"token_ended,omitempty"`
}

// A Done is the result of an action. If Changed equals the requested number, there may be more deliveries. Repeating
// the action with the same Before skips deliveries that fail again meanwhile.
type Done struct {
	Changed int       `json:"changed"`
	Before  time.Time `json:"before,omitzero"`
	Note    string    `json:"note,omitempty"`
}

// forgets warns about deliveries that are sent again late.
const forgets = "each delivery keeps its Idempotency-Key; an upstream that has forgotten the key (Stripe after 24 h) may do the work again"

// longestOrder is the largest body of an order, in bytes.
const longestOrder = 64 << 10

// changeAll applies an action to the selected deliveries, the oldest first.
func (q *request) changeAll(do string) (any, *refuse.Facts) {
	var o Order
	if err := readOrder(q.Body, &o); err != nil {
		return nil, bad("body", `is not a command such as {"upstream":"ntfy","reason":"attempts","older":"1h","most":100}: `+err.Error())
	}
	f, wrong := q.filter(&o.Choice)
	if wrong == nil {
		wrong = o.wrong(do)
	}
	if wrong == nil {
		wrong = q.mayOutlive(&o, do)
	}
	if wrong != nil {
		return nil, wrong
	}
	if f.Before.IsZero() {
		f.Before = time.Now().Add(time.Millisecond).Truncate(time.Millisecond).UTC()
	}
	f.Status, f.TokenEnded = cmp.Or(f.Status, delivery.Failed), o.TokenEnded
	n, err := q.change(do, f, cmp.Or(o.Most, usual))
	if err != nil && n == 0 {
		return nil, q.failed(err)
	}
	d := done(do, n, f.Before)
	if do == redrive && n < cmp.Or(o.Most, usual) && !o.TokenEnded && q.left(f) {
		d.Note = strings.TrimPrefix(d.Note+"; "+leaves, "; ")
	}
	return d, nil
}

// left reports whether a redrive skipped deliveries, because their callers' tokens have expired.
func (q *request) left(f delivery.Filter) bool {
	page, _, err := q.queue.List(q.Context(), f, "", 1)
	return err == nil && len(page) > 0
}

// leaves warns about skipped deliveries.
const leaves = "some were skipped, because their callers' tokens have expired: submit them again, or redrive them as an operator with token_ended"

func readOrder(body io.ReadCloser, o *Order) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, body, longestOrder))
	d.DisallowUnknownFields()
	err := d.Decode(o)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	return err
}

// wrong reports errors in an order whose choice is valid.
func (o *Order) wrong(do string) *refuse.Facts {
	switch {
	case o.Most < 0 || o.Most > most:
		return bad("most", fmt.Sprintf("want 1 to %d", most))
	case do == redrive && o.Status != "" && o.Status != delivery.Failed:
		return bad("status", "only dead letters can be redriven; leave it out")
	case o.Status == delivery.Processing || o.Status == delivery.Completed:
		return bad("status", "want failed, which deletes dead letters, or queued or created, which make waiting deliveries dead letters")
	case o.Choice.empty() && !o.All:
		return bad("body", `selects nothing: set ids, upstream, reason, owner, older or before, or "all":true`)
	}
	return nil
}

// empty reports whether the choice selects all deliveries.
func (c *Choice) empty() bool {
	return len(c.IDs) == 0 && c.Upstream == "" && c.Reason == "" && c.Owner == "" && c.Older == "" && c.Before.IsZero()
}

func done(do string, n int, before time.Time) Done {
	d := Done{Changed: n, Before: before}
	if do == redrive && n > 0 {
		d.Note = forgets
	}
	return d
}

func (q *request) change(do string, f delivery.Filter, most int) (int, error) {
	if do == redrive {
		return q.queue.Redrive(q.Context(), f, most)
	}
	return q.queue.Drop(q.Context(), f, most)
}

// changeOne applies an action to one delivery. Dropping a waiting delivery makes it a dead letter. Dropping a dead
// letter deletes it.
func (q *request) changeOne(id, do string) (any, *refuse.Facts) {
	d, f := q.get(id)
	if f != nil {
		return nil, f
	}
	o, f := q.orderForOne(do)
	if f != nil {
		return nil, f
	}
	if do == redrive && d.Status != delivery.Failed || d.Status == delivery.Processing || d.Status == delivery.Completed {
		return nil, conflict(do, &d)
	}
	n, err := q.change(do, delivery.Filter{IDs: []string{id}, Status: d.Status, TokenEnded: o.TokenEnded}, 1)
	if err != nil {
		return nil, q.failed(err)
	}
	if n > 0 {
		return done(do, n, time.Time{}), nil
	}
	if d, f = q.get(id); f != nil {
		return nil, f
	}
	return nil, unchanged(do, &d)
}

// orderForOne reads the order for one delivery, which is usually empty.
func (q *request) orderForOne(do string) (o Order, f *refuse.Facts) {
	if err := readOrder(q.Body, &o); err != nil && err != io.EOF {
		return o, bad("body", `want none, or {"token_ended":true}: `+err.Error())
	}
	if !o.Choice.empty() || o.Status != "" || o.All || o.Most != 0 {
		return o, bad("body", "must not select deliveries, because the path already names one")
	}
	return o, q.mayOutlive(&o, do)
}

// unchanged returns the reason why a delivery was not changed, although it had the right status before.
func unchanged(do string, d *delivery.Delivery) *refuse.Facts {
	if do != redrive || d.Status != delivery.Failed || d.TokenEnds.IsZero() {
		return conflict(do, d)
	}
	f := refused(http.StatusConflict, conflicting, "cannot redrive the delivery: its caller's token expired at %s; submit it again, or redrive it as an operator with token_ended and weir's credentials", d.TokenEnds.UTC().Format(time.RFC3339))
	f.Details = map[string]any{"field": "token_ends", "reason": "has passed"}
	return f
}

// mayOutlive refuses to redrive a delivery whose caller's token has expired, unless an operator requests it.
func (q *request) mayOutlive(o *Order, do string) *refuse.Facts {
	switch {
	case o.TokenEnded && do != redrive:
		return bad("token_ended", "does not apply to one delivery; leave it out")
	case o.TokenEnded && !q.who.Operator:
		return refused(http.StatusForbidden, refuse.Forbidden, "token_ended: only operators may redrive deliveries whose callers' tokens have expired; submit the request again")
	}
	return nil
}

// conflict returns the reason why an action does not fit the status of a delivery.
func conflict(do string, d *delivery.Delivery) *refuse.Facts {
	why := map[delivery.Status]string{
		delivery.Completed:  "it was already delivered",
		delivery.Processing: "it is being sent; try again when the attempt has ended",
	}[d.Status]
	switch {
	case do == drop && d.Status == delivery.Completed:
		why = "it was delivered, and is removed after deliveries.keep"
	case why == "":
		why = "it is waiting to be sent, and is not a dead letter"
	}
	f := refused(http.StatusConflict, conflicting, "cannot %s the delivery, whose status is %s: %s", do, d.Status, why)
	f.Details = map[string]any{"field": "status", "reason": string(d.Status)}
	return f
}
