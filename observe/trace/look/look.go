// Package look finds a trace in X-Ray and shows it as a tree.
package look

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A Source is where traces are looked for.
type Source interface {
	// Find finds a trace. about is when it began, which not every source needs. The error is ErrNone if there is none.
	Find(ctx context.Context, id trace.ID, about time.Time) (Trace, error)
}

// ErrNone says that there is no such trace.
var ErrNone = errors.New("there is no such trace")

// A Trace is what was found.
type Trace struct {
	ID    string // as X-Ray writes it, or in 32 digits
	Spans []Span // in no order
}

// A Span is one thing that took time.
type Span struct {
	ID      string
	Parent  string // "" of a first one
	Name    string
	Service string // whose it is; "" if that is not said
	Began   time.Time
	Took    time.Duration
	Open    bool   // it has not ended, or nobody said so
	Error   string // what went wrong; "" if nothing did
	Notes   []Note // sorted by name
}

// A Note is an annotation, or an attribute.
type Note struct{ Name, Value string }

// About is when a trace may have begun, by its ID: those that weir and X-Ray make have the time in front. It is zero if that
// is no time of the last 30 days.
func About(id trace.ID, now time.Time) time.Time {
	at := time.Unix(int64(id[0])<<24|int64(id[1])<<16|int64(id[2])<<8|int64(id[3]), 0)
	if at.After(now.Add(5*time.Minute)) || now.Sub(at) > 30*24*time.Hour {
		return time.Time{}
	}
	return at
}
