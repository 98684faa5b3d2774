package deliveries

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
}

// A Done is what was done. There may be more to do while Changed is as much as was asked for; with
// the same Before nothing is done twice that dies again meanwhile.
type Done struct {
	Changed int       `json:"changed"`
	Before  time.Time `json:"before,omitzero"`
	Note    string    `json:"note,omitempty"`
}

// forgets is what people must know of a delivery that is sent again late.
const forgets = "each keeps its Idempotency-Key; upstreams forget keys (Stripe after 24 h), and what was done before that is then done again"

// longestOrder is the largest body of an order, in bytes.
const longestOrder = 64 << 10

// changeAll does something with those that an order chooses, the oldest first.
func (q *request) changeAll(do string) (any, *refuse.Facts) {
	var o Order
	if err := readOrder(q.Body, &o); err != nil {
		return nil, bad("body", `is no order such as {"upstream":"ntfy","reason":"attempts","older":"1h","most":100}: `+err.Error())
	}
	f, wrong := q.filter(&o.Choice)
	if wrong == nil {
		wrong = o.wrong(do)
	}
	if wrong != nil {
		return nil, wrong
	}
	if f.Before.IsZero() {
		f.Before = time.Now().Add(time.Millisecond).Truncate(time.Millisecond).UTC()
	}
	f.Status = cmp.Or(f.Status, delivery.Failed)
	n, err := q.change(do, f, cmp.Or(o.Most, usual))
	if err != nil && n == 0 {
		return nil, q.failed(err)
	}
	return done(do, n, f.Before), nil
}

func readOrder(body io.ReadCloser, o *Order) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, body, longestOrder))
	d.DisallowUnknownFields()
	err := d.Decode(o)
	if err == nil && d.More() {
		err = errors.New("more than one order")
	}
	return err
}

// wrong says what is wrong with an order whose choice is good.
func (o *Order) wrong(do string) *refuse.Facts {
	switch {
	case o.Most < 0 || o.Most > most:
		return bad("most", fmt.Sprintf("want 1 to %d", most))
	case do == redrive && o.Status != "" && o.Status != delivery.Failed:
		return bad("status", "only dead letters are redriven; leave it out")
	case o.Status == delivery.Processing || o.Status == delivery.Completed:
		return bad("status", "dead letters (failed) are deleted, what waits (queued, created) becomes dead letters; nothing else can be dropped")
	case o.Choice.empty() && !o.All:
		return bad("body", `chooses nothing: name ids, upstream, reason, owner, older or before, or say "all":true`)
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
	if do == redrive && d.Status != delivery.Failed || d.Status == delivery.Processing || d.Status == delivery.Completed {
		return nil, conflict(do, &d)
	}
	n, err := q.change(do, delivery.Filter{IDs: []string{id}, Status: d.Status}, 1)
	if err != nil {
		return nil, q.failed(err)
	}
	if n > 0 {
		return done(do, n, time.Time{}), nil
	}
	if d, f = q.get(id); f != nil {
		return nil, f
	}
	return nil, conflict(do, &d)
}

// conflict says why something cannot be done with a delivery as it stands.
func conflict(do string, d *delivery.Delivery) *refuse.Facts {
	why := map[delivery.Status]string{
		delivery.Completed:  "it was delivered, and would be done twice",
		delivery.Processing: "it is being sent; ask again when that has ended",
	}[d.Status]
	if why == "" {
		why = "it waits to be sent, and is no dead letter"
	}
	f := refused(http.StatusConflict, conflicting, "cannot %s the delivery, whose status is %s: %s", do, d.Status, why)
	f.Details = map[string]any{"field": "status", "reason": string(d.Status)}
	return f
}
