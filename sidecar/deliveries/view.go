package deliveries

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/veil"
)

// A Receipt is the response to a submitted delivery.
type Receipt struct {
	ID       string          `json:"id"`
	Status   delivery.Status `json:"status"`
	Upstream string          `json:"upstream"`
	Accepted time.Time       `json:"accepted"`
	Attempts int             `json:"attempts"`     // of the current series
	Due      time.Time       `json:"due,omitzero"` // while it waits
	Reason   delivery.Reason `json:"reason,omitempty"`
	Detail   string          `json:"detail,omitempty"`
}

// ReceiptOf returns the receipt of a delivery.
func ReceiptOf(d *delivery.Delivery) Receipt {
	r := Receipt{ID: d.ID, Status: d.Status, Upstream: d.Upstream, Accepted: d.Accepted, Attempts: d.Attempts, Reason: d.Reason, Detail: d.Detail}
	if d.Status == delivery.Queued || d.Status == delivery.Created {
		r.Due = d.Due
	}
	return r
}

// A View is a delivery in a list.
type View struct {
	Receipt
	Changed     time.Time `json:"changed"` // when the delivery got its status
	Expires     time.Time `json:"expires,omitzero"`
	TokenEnds   time.Time `json:"token_ends,omitzero"` // expiry of the caller's token; a later redrive needs token_ended
	Series      int       `json:"series"`              // 1 plus the number of redrives
	Owner       string    `json:"owner,omitempty"`
	Key         string    `json:"idempotency_key,omitempty"`
	OrderKey    string    `json:"order_key,omitempty"`
	Correlation string    `json:"correlation_id,omitempty"`
	Callback    string    `json:"callback,omitempty"`    // callback that is notified
	Tells       string    `json:"callback_of,omitempty"` // the delivery about which this one notifies
	Method      string    `json:"method,omitempty"`      // only in responses about a single delivery
	Path        string    `json:"path,omitempty"`
	Bytes       int64     `json:"body_bytes,omitempty"`
}

func viewOf(d *delivery.Delivery) View {
	return View{Receipt: ReceiptOf(d), Changed: d.Changed, Expires: d.Expires, TokenEnds: d.TokenEnds, Series: d.Series, Owner: d.Owner, Key: d.Key,
		OrderKey: d.OrderKey, Correlation: d.Correlation, Callback: d.Callback, Tells: d.Tells, Method: d.Method, Path: d.Path, Bytes: d.Size()}
}

// A Whole is a delivery with the data to send and all attempts, the first one first.
type Whole struct {
	View
	Query     string              `json:"query,omitempty"`
	Header    map[string][]string `json:"headers,omitempty"`
	Body      string              `json:"body,omitempty"`        // beginning of the body, if it is text
	BodyStart []byte              `json:"body_start,omitempty"`  // the same in base64, if it is not text
	Longer    bool                `json:"body_longer,omitempty"` // the body is longer than the part shown
	History   []Attempt           `json:"history"`
}

// shownBody is how much of a body is shown, in bytes.
const shownBody = 4 << 10

func wholeOf(d *delivery.Delivery, attempts []delivery.Attempt) Whole {
	w := Whole{View: viewOf(d), Query: shownQuery(d.Query), History: attemptsOf(attempts), Longer: d.Size() > shownBody}
	for name, values := range d.Header {
		if w.Header == nil {
			w.Header = make(map[string][]string)
		}
		if veil.Secret(name) {
			values = []string{hidden}
		}
		w.Header[name] = values
	}
	w.Body, w.BodyStart = shown(d.Body[:min(len(d.Body), shownBody)], w.Longer)
	return w
}

// hidden replaces values whose name indicates a credential.
const hidden = "(hidden)"

// shownQuery returns a query without credentials.
func shownQuery(raw string) string {
	parts := strings.Split(raw, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err != nil || veil.Secret(plain) {
			parts[i] = name + "=" + hidden
		}
	}
	return strings.Join(parts, "&")
}

// shown returns the beginning of a body as text, or as bytes. A character that was cut at the end does not matter.
func shown(b []byte, cut bool) (text string, raw []byte) {
	whole := b
	for n := 0; cut && n < utf8.UTFMax-1 && len(whole) > 0 && !utf8.Valid(whole); n++ {
		whole = whole[:len(whole)-1]
	}
	if utf8.Valid(whole) {
		return string(whole), nil
	}
	return "", b
}

// An Attempt is an attempt as shown.
type Attempt struct {
	N       int       `json:"n"` // counts from 1 over all series
	Series  int       `json:"series"`
	Began   time.Time `json:"began"`
	TookMS  int64     `json:"took_ms"`
	Status  int       `json:"status,omitempty"` // of the response
	Class   string    `json:"class"`
	Code    string    `json:"code,omitempty"`
	Counted bool      `json:"counted"`                // the attempt is part of the schedule
	Answer  string    `json:"answer,omitempty"`       // beginning of the response body, if it is text
	Bytes   []byte    `json:"answer_bytes,omitempty"` // the same in base64, if it is not text
}

func attemptsOf(all []delivery.Attempt) []Attempt {
	out := make([]Attempt, 0, len(all))
	for i := range all {
		a := &all[i]
		v := Attempt{N: a.N, Series: a.Series, Began: a.Began, TookMS: a.Took.Milliseconds(), Status: a.Status, Class: a.Class.String(), Code: a.Code, Counted: a.Counted}
		v.Answer, v.Bytes = shown(a.Answer, len(a.Answer) == delivery.MaxAnswer)
		out = append(out, v)
	}
	return out
}

// A Page is a part of a list, the latest deliveries first. The next part begins at the cursor Next. "" means that
// this is the last part.
type Page struct {
	Deliveries []View    `json:"deliveries"`
	Next       string    `json:"next,omitempty"`
	Before     time.Time `json:"before,omitzero"` // time that older resolved to; send it with the cursor
}
