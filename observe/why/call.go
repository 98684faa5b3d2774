package why

import (
	"fmt"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe"
)

// A Call is the record of one call. Times are in milliseconds. It is immutable.
type Call struct {
	ID        string    `json:"id"`
	Weir      string    `json:"weir,omitempty"` // the process that made it; "" for the process that is asked
	Upstream  string    `json:"upstream"`
	Operation string    `json:"operation,omitempty"`
	Key       string    `json:"key,omitempty"` // "tenant=acme,user=7"
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"` // end of the call
	TookMS    float64   `json:"took_ms"`
	Class     string    `json:"class"`            // of the last attempt
	Reason    string    `json:"reason,omitempty"` // why it was refused
	Why       string    `json:"why,omitempty"`    // the reason in words, or why there was no further attempt
	HeldBack  int       `json:"held_back,omitempty"`
	StaleMS   float64   `json:"stale_ms,omitempty"` // the age of the earlier response that the caller got (stale_if_error)

	Attempts []Attempt `json:"attempts,omitempty"`
	Limits   []Limit   `json:"limits,omitempty"`
	Change   []Change  `json:"change,omitempty"` // what to change if the result is unwanted
}

// An Attempt is one attempt of a Call.
type Attempt struct {
	N        int     `json:"n"`
	RestedMS float64 `json:"rested_ms,omitempty"` // since the previous attempt
	WaitedMS float64 `json:"waited_ms,omitempty"` // for its turn
	Limit    string  `json:"limit,omitempty"`     // the limit that caused the wait or the refusal
	Reason   string  `json:"reason,omitempty"`    // why it was not made
	TookMS   float64 `json:"took_ms,omitempty"`
	Class    string  `json:"class,omitempty"` // its result; "" if it was not made
	Code     string  `json:"code,omitempty"`
	HintMS   float64 `json:"hint_ms,omitempty"` // the delay that the response or the limit requested
}

// A Limit is a limit that the call was charged to, in its state at the end of the call.
type Limit struct {
	Name     string  `json:"name"`
	Key      string  `json:"key,omitempty"`
	Rule     string  `json:"rule"` // "3000/s burst 300"
	Unit     string  `json:"unit"`
	Cost     int64   `json:"cost"`
	Left     int64   `json:"left"`
	Full     int64   `json:"full"`
	PausedMS float64 `json:"paused_ms,omitempty"`
	Refused  bool    `json:"refused,omitempty"` // this limit refused the call
	At       string  `json:"at,omitempty"`      // its position in the configuration
}

// Costs returns the cost of the call: "3", or "0.25" in dollars.
func (l *Limit) Costs() string {
	if l.Unit == limit.USD {
		return limit.Dollars(l.Cost)
	}
	return strconv.FormatInt(l.Cost, 10)
}

// Remaining returns the remaining units: "3 of 5 requests", or "12.40 of 25.00 USD".
func (l *Limit) Remaining() string {
	if l.Unit == limit.USD {
		return limit.Dollars(l.Left) + " of " + limit.Dollars(l.Full) + " USD"
	}
	return fmt.Sprintf("%d of %d %s", l.Left, l.Full, l.Unit)
}

// callOf returns the Call for a detailed record.
func callOf(r *weir.Record, kind Kind, now time.Time, where func(upstream, field string) string) *Call {
	about := r.Subject()
	c := &Call{
		ID: r.ID, Upstream: about.Upstream, Operation: about.Operation, Key: observe.Redact(about.Key, longestKey), Kind: kind, At: now,
		TookMS: milli(r.Took), Class: r.Class.String(), HeldBack: int(r.Held),
	}
	for _, a := range r.Attempts() {
		to := Attempt{
			N: a.N, RestedMS: milli(a.Rested), WaitedMS: milli(a.Waited), Limit: a.Limit, Reason: string(a.Reason),
			TookMS: milli(a.Took), Code: observe.Redact(a.Code, longestKey), HintMS: milli(a.Hint),
		}
		if a.Reason == "" {
			to.Class = a.Class.String()
		}
		c.Attempts = append(c.Attempts, to)
	}
	refusal, _ := r.Why.(*weir.Refusal)
	levels := r.Levels()
	for i := range levels {
		l := &levels[i]
		c.Limits = append(c.Limits, Limit{
			Name: l.Rule.Name, Key: observe.Redact(l.Key, longestKey), Rule: l.Rule.At(l.Level), Unit: l.Rule.UnitName(), Cost: l.Cost,
			Left: l.Level.Left, Full: l.Level.Full, PausedMS: milli(l.Level.Paused), At: where(c.Upstream, "limits."+l.Rule.Name),
			Refused: refusal != nil && refusal.Limit == l.Rule.Name && refusal.Key == l.Key,
		})
	}
	switch {
	case refusal != nil:
		c.Reason, c.Why = string(refusal.Reason), reasonOf(refusal)
		c.Change = changes(c.Upstream, refusal, r.Part, where)
	case r.Why != nil:
		c.Why = observe.Error(r.Why)
		c.Change = afterFailure(c.Upstream, r, where)
	}
	return c
}

// longestKey is the maximum length of a key or an upstream's code.
const longestKey = 256

// milli returns a duration in milliseconds, -1 for a duration without an end.
func milli(d time.Duration) float64 {
	if d > 1000*24*time.Hour {
		return -1
	}
	return float64(d.Microseconds()) / 1000
}
