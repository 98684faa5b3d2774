package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// A Callback is whom deliveries tell that they are over: an upstream, to which a POST is delivered as any other request is,
// with attempts and a dead letter of its own. The delivery owes it in the very change that ends it, and its ID is made of the
// delivery's, so that it is stored once, whoever does it and however often. Nobody is told of a callback.
type Callback struct {
	Upstream string
	Path     string   // raw, and perhaps a query
	Failed   bool     // dead letters are told of, too
	Secrets  []Secret // sign it, each; none leave it unsigned
}

var errNoCallback = errors.New("its callback is no longer configured")

// mostTold is how many deliveries are looked up at once of which somebody is to be told.
const mostTold = 100

// telling bounds how long it takes to store one callback.
const telling = 5 * time.Second

// tellAll tells of all that is over and owes it.
func (w *Worker) tellAll(ctx context.Context) {
	var after Mark
	var owed Pile
	missing := make(map[string]bool)
	for ctx.Err() == nil {
		all, err := w.Queue.Owing(ctx, after, mostTold)
		if err != nil {
			w.failed(ctx, "look for callbacks", "", err)
			return
		}
		for i := range all {
			d := &all[i]
			after = Mark{d.Changed, d.Seq}
			err := w.tell(ctx, d)
			if err != nil {
				owed.add(0, d.Changed)
			}
			if errors.Is(err, errNoCallback) {
				if missing[d.Callback] {
					continue
				}
				missing[d.Callback] = true
				err = fmt.Errorf("%w: %s", err, d.Callback)
			}
			if err != nil {
				w.failed(ctx, "call back", d.Upstream, err)
			}
		}
		if len(all) < mostTold {
			w.found(func(h *Held) { h.Owed = &owed })
			return
		}
	}
}

// tellOf tells of a delivery that has just ended. What fails is left to a sweep.
func (w *Worker) tellOf(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.hard), telling)
	defer cancel()
	d, err := w.Queue.Get(ctx, id)
	if err == nil && !d.Waits() {
		err = w.tell(ctx, &d)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		w.failed(ctx, "call back", d.Upstream, err)
	}
}

// tell stores the callback of a delivery, and says that it is stored. A callback that cannot be stored at all is given up, and one whose
// name nobody knows for long: another weir may have a newer configuration.
func (w *Worker) tell(ctx context.Context, d *Delivery) error {
	c, known := w.Callbacks[d.Callback]
	var failed error
	switch {
	case !known && time.Since(d.Changed) < goneAfter:
		return errNoCallback
	case !known:
		failed = errNoCallback
	case d.Status == Completed || c.Failed:
		if failed = w.callBack(ctx, &c, d); failed != nil && !hopeless(failed) {
			return failed
		}
	}
	return errors.Join(failed, w.Queue.Told(ctx, d.Seq, d.Series))
}

func hopeless(err error) bool {
	_, is := errors.AsType[*FieldError](err)
	return is
}

// callBack stores the callback of a delivery; that it is stored already is no error, whatever the callback was then.
func (w *Worker) callBack(ctx context.Context, c *Callback, d *Delivery) error {
	attempts, err := w.Queue.Attempts(ctx, d.ID)
	if err != nil {
		return err
	}
	_, _, err = w.Accept(ctx, c.request(d, attempts))
	if errors.Is(err, ErrKeyReused) {
		return nil
	}
	return err
}

// A notice is the body of a callback.
type notice struct {
	Type      string    `json:"type"` // delivery.completed or delivery.failed
	Timestamp time.Time `json:"timestamp"`
	Data      told      `json:"data"`
}

type told struct {
	ID           string `json:"id"`
	Status       Status `json:"status"`
	Upstream     string `json:"upstream"`
	Attempts     int    `json:"attempts"` // of the present series
	AnswerStatus int    `json:"answer_status,omitempty"`
	Answer       string `json:"answer,omitempty"`       // its beginning, if that is text
	AnswerBytes  []byte `json:"answer_bytes,omitempty"` // the same in base64, if it is none
	Correlation  string `json:"correlation_id,omitempty"`
	Key          string `json:"idempotency_key,omitempty"`
	Reason       Reason `json:"reason,omitempty"`
	Detail       string `json:"detail,omitempty"`
}

// request is the callback of a delivery. It is the same whenever it is made.
func (c *Callback) request(d *Delivery, attempts []Attempt) *Request {
	t := told{ID: d.ID, Status: d.Status, Upstream: d.Upstream, Attempts: d.Attempts, Correlation: d.Correlation, Key: d.Key, Reason: d.Reason, Detail: d.Detail}
	for i := range attempts {
		if a := &attempts[i]; a.Series == d.Series && a.Status != 0 {
			t.AnswerStatus = a.Status
			t.Answer, t.AnswerBytes = textOf(a.Answer)
		}
	}
	body, _ := json.Marshal(notice{"delivery." + string(d.Status), d.Changed.UTC(), t}) // it never fails
	path, query, _ := strings.Cut(c.Path, "?")
	return &Request{ID: d.callbackID(), Tenant: d.Tenant, Owner: d.Owner, Upstream: c.Upstream, Method: http.MethodPost, Path: path, Query: query,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Correlation: d.Correlation, Callback: d.Callback, Tells: d.ID}
}

// textOf is the beginning of an answer as text, or as it is. A letter that it was cut in does not make it something else.
func textOf(b []byte) (string, []byte) {
	whole := b
	for n := 0; len(b) == MaxAnswer && n < utf8.UTFMax-1 && !utf8.Valid(whole); n++ {
		whole = whole[:len(whole)-1]
	}
	if utf8.Valid(whole) {
		return string(whole), nil
	}
	return "", bytes.Clone(b)
}

// callbackID is the ID of the delivery that tells of this one, in its present series.
func (d *Delivery) callbackID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "callback\x00%s\x00%d", d.ID, d.Series))
	return idOf(d.Changed, [16]byte(sum[:16]))
}
