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

// What can be done with deliveries.
const (
	redrive = "redrive"
	drop    = "drop"
)

// An Order says with which deliveries something is to be done.
type Order struct {
	Choice
	All  bool `json:"all,omitempty"`  // an empty choice means all of them, and not a mistake
	Most int  `json:"most,omitempty"` // at once; 0 means 100

	// TokenEnded redrives those whose callers' tokens have ended, too: they go with what weir itself adds.
	TokenEnded bool `json:"token_ended,omitempty"`
}

// A Done is what was done. There may be more to do while Changed is as much as was asked for; with
// the same Before nothing is done twice that dies again meanwhile.
type Done struct {
	Changed int       `json:"changed"`
	Before  time.Time `json:"before,omitzero"`
	Note    string    `json:"note,omitempty"`
}

// forgets is what people must know of a delivery that is sent again late.
const forgets = "each delivery keeps its Idempotency-Key; an upstream that has forgotten the key (Stripe after 24 h) may do the work again"

// longestOrder is the largest body of an order, in bytes.
const longestOrder = 64 << 10

// changeAll does something with those that an order chooses, the oldest first.
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

// left reports whether a redrive left some of what it was to redrive, which it does if their callers' tokens have ended.
func (q *request) left(f delivery.Filter) bool {
	page, _, err := q.queue.List(q.Context(), f, "", 1)
	return err == nil && len(page) > 0
}

// leaves is what people must know of deliveries that are left.
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

// wrong says what is wrong with an order whose choice is good.
func (o *Order) wrong(do string) *refuse.Facts {
	switch {
	case o.Most < 0 || o.Most > most:
		return bad("most", fmt.Sprintf("want 1 to %d", most))
	case do == redrive && o.Status != "" && o.Status != delivery.Failed:
		return bad("status", "only dead letters can be redriven; leave it out")
	case o.Status == delivery.Processing || o.Status == delivery.Completed:
		return bad("status", "only dead letters (failed), which are deleted, and waiting deliveries (queued, created), which become dead letters, can be dropped")
	case o.Choice.empty() && !o.All:
		return bad("body", `selects nothing: set ids, upstream, reason, owner, older or before, or "all":true`)
	}
	return nil
}

// empty reports whether the choice leaves out nothing.
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

// changeOne does something with one delivery. A waiting one that is dropped becomes a dead letter; a
// dead letter that is dropped is deleted.
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

// orderForOne reads what an order about one delivery says: nothing, as a rule.
func (q *request) orderForOne(do string) (o Order, f *refuse.Facts) {
	if err := readOrder(q.Body, &o); err != nil && err != io.EOF {
		return o, bad("body", `want none, or {"token_ended":true}: `+err.Error())
	}
	if !o.Choice.empty() || o.Status != "" || o.All || o.Most != 0 {
		return o, bad("body", "selects deliveries, but the path names one")
	}
	return o, q.mayOutlive(&o, do)
}

// unchanged says why a delivery was not changed, though its status was right when it was looked at.
func unchanged(do string, d *delivery.Delivery) *refuse.Facts {
	if do != redrive || d.Status != delivery.Failed || d.TokenEnds.IsZero() {
		return conflict(do, d)
	}
	f := refused(http.StatusConflict, conflicting, "cannot redrive the delivery: its caller's token expired at %s; submit it again, or redrive it as an operator with token_ended and weir's credentials", d.TokenEnds.UTC().Format(time.RFC3339))
	f.Details = map[string]any{"field": "token_ends", "reason": "has passed"}
	return f
}

// mayOutlive refuses to redrive what a caller's token gave no right to any more, but for operators.
func (q *request) mayOutlive(o *Order, do string) *refuse.Facts {
	switch {
	case o.TokenEnded && do != redrive:
		return bad("token_ended", "does not apply to one delivery; leave it out")
	case o.TokenEnded && !q.who.Operator:
		return refused(http.StatusForbidden, refuse.Forbidden, "token_ended: only operators may redrive deliveries whose callers' tokens have expired; submit the request again")
	}
	return nil
}

// conflict says why something cannot be done with a delivery as it stands.
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
