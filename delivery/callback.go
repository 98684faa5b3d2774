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

// A Callback is an upstream to notify when deliveries have ended. The notification is a POST, which is a delivery
// itself, with attempts and perhaps a dead letter. The change that ends a delivery also records that its callback is
// due. The ID of the callback is derived from the ID of the delivery, so it is stored only once, however many workers
// try. A callback causes no further callback.
type Callback struct {
	Upstream string
	Path     string   // escaped, and may include a query
	Failed   bool     // notify of dead letters too
	Secrets  []Secret // each adds a signature; if empty, callbacks are not signed
}

var errNoCallback = errors.New("its callback is no longer configured")

// mostTold is how many deliveries with due callbacks are read at a time.
const mostTold = 100

// telling is the timeout for storing one callback.
const telling = 5 * time.Second

// tellAll stores all callbacks that are due.
func (w *Worker) tellAll(ctx context.Context) {
	var after Mark
	var owed Pile
	missing := make(map[string]bool)
	for ctx.Err() == nil {
		all, err := w.Queue.Owing(ctx, after, mostTold)
		if err != nil {
			w.failed(ctx, "find callbacks", "", err)
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

// tellOf stores the callback of a delivery that has just ended. If it fails, a sweep tries again.
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

// tell stores the callback of a delivery and records that in the queue. It gives up a callback that can never be
// stored. It also gives up an unknown name, but only after goneAfter, because another process may have a newer
// configuration.
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

// callBack stores the callback of a delivery. It is not an error if the callback is stored already, even with different
// contents.
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
	Answer       string `json:"answer,omitempty"`       // the beginning of the response, if it is text
	AnswerBytes  []byte `json:"answer_bytes,omitempty"` // the same in base64, if it is not text
	Correlation  string `json:"correlation_id,omitempty"`
	Key          string `json:"idempotency_key,omitempty"`
	Reason       Reason `json:"reason,omitempty"`
	Detail       string `json:"detail,omitempty"`
}

// request returns the callback of a delivery. The result depends only on the arguments.
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

// textOf returns the beginning of a response as text if it is valid UTF-8, and as bytes otherwise. It drops a character
// that was cut at the end.
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

// callbackID returns the ID of the delivery's callback in its present series.
func (d *Delivery) callbackID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "callback\x00%s\x00%d", d.ID, d.Series))
	return idOf(d.Changed, [16]byte(sum[:16]))
}
