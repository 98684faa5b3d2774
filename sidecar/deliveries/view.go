package deliveries

import (
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/delivery"
)

// A Receipt is what is told of a delivery when it is handed in.
type Receipt struct {
	ID       string          `json:"id"`
	Status   delivery.Status `json:"status"`
	Upstream string          `json:"upstream"`
	Accepted time.Time       `json:"accepted"`
	Attempts int             `json:"attempts"`     // of the present series
	Due      time.Time       `json:"due,omitzero"` // while it waits
	Reason   delivery.Reason `json:"reason,omitempty"`
	Detail   string          `json:"detail,omitempty"`
}

// ReceiptOf is that of a delivery.
func ReceiptOf(d *delivery.Delivery) Receipt {
	r := Receipt{ID: d.ID, Status: d.Status, Upstream: d.Upstream, Accepted: d.Accepted, Attempts: d.Attempts, Reason: d.Reason, Detail: d.Detail}
	if d.Status == delivery.Queued || d.Status == delivery.Created {
		r.Due = d.Due
	}
	return r
}

// A View is a delivery as lists show it.
type View struct {
	Receipt
	Changed     time.Time `json:"changed"` // when it came to its status
	Expires     time.Time `json:"expires,omitzero"`
	TokenEnds   time.Time `json:"token_ends,omitzero"` // that the caller showed; a redrive needs token_ended after it
	Series      int       `json:"series"`              // 1, and one more with each redrive
	Owner       string    `json:"owner,omitempty"`
	Key         string    `json:"idempotency_key,omitempty"`
	OrderKey    string    `json:"order_key,omitempty"`
	Correlation string    `json:"correlation_id,omitempty"`
	Method      string    `json:"method,omitempty"` // in lists of one delivery alone
	Path        string    `json:"path,omitempty"`
	Bytes       int       `json:"body_bytes,omitempty"`
}

func viewOf(d *delivery.Delivery) View {
	return View{Receipt: ReceiptOf(d), Changed: d.Changed, Expires: d.Expires, TokenEnds: d.TokenEnds, Series: d.Series, Owner: d.Owner, Key: d.Key,
		OrderKey: d.OrderKey, Correlation: d.Correlation, Method: d.Method, Path: d.Path, Bytes: len(d.Body)}
}

// A Whole is a delivery with every attempt, the first one first.
type Whole struct {
	View
	History []Attempt `json:"history"`
}

// An Attempt is one as it is shown.
type Attempt struct {
	N       int       `json:"n"` // counts from 1 over all series
	Series  int       `json:"series"`
	Began   time.Time `json:"began"`
	TookMS  int64     `json:"took_ms"`
	Status  int       `json:"status,omitempty"` // of the answer
	Class   string    `json:"class"`
	Code    string    `json:"code,omitempty"`
	Counted bool      `json:"counted"`                // it is one of the schedule's
	Answer  string    `json:"answer,omitempty"`       // the beginning of its body, if that is text
	Bytes   []byte    `json:"answer_bytes,omitempty"` // the same in base64, if it is none
}

func attemptsOf(all []delivery.Attempt) []Attempt {
	out := make([]Attempt, 0, len(all))
	for i := range all {
		a := &all[i]
		v := Attempt{N: a.N, Series: a.Series, Began: a.Began, TookMS: a.Took.Milliseconds(), Status: a.Status, Class: a.Class.String(), Code: a.Code, Counted: a.Counted}
		if utf8.Valid(a.Answer) {
			v.Answer = string(a.Answer)
		} else {
			v.Bytes = a.Answer
		}
		out = append(out, v)
	}
	return out
}

// A Page is a part of a list, the latest deliveries first. The next part begins at the cursor Next;
// "" means that this was the last.
type Page struct {
	Deliveries []View    `json:"deliveries"`
	Next       string    `json:"next,omitempty"`
	Before     time.Time `json:"before,omitzero"` // that older meant: give it with the cursor
}
