// Package look finds a trace in X-Ray and shows it as a tree.
package look

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A Source is a place where traces can be found.
type Source interface {
	// Find returns a trace. about is the approximate start of the trace. Not every source needs it. The error is ErrNone if there
	// is no such trace.
	Find(ctx context.Context, id trace.ID, about time.Time) (Trace, error)
}

// ErrNone means that there is no such trace.
var ErrNone = errors.New("there is no such trace")

// A Trace is a trace that was found.
type Trace struct {
	ID    string // in X-Ray's form, or 32 digits
	Spans []Span // in any order
}

// A Span is an operation with a duration.
type Span struct {
	ID      string
	Parent  string // "" for a root
	Name    string
	Service string // the service that made it; "" if unknown
	Began   time.Time
	Took    time.Duration
	Open    bool   // it has not ended, or its end is unknown
	Error   string // "" if it did not fail
	Notes   []Note // sorted by name
}

// A Note is an annotation or an attribute.
type Note struct{ Name, Value string }

// About returns the start of a trace according to its ID: IDs of weir and X-Ray begin with the time. It returns the zero Time if
// that is not within the last 30 days.
func About(id trace.ID, now time.Time) time.Time {
	at := time.Unix(int64(id[0])<<24|int64(id[1])<<16|int64(id[2])<<8|int64(id[3]), 0)
	if at.After(now.Add(5*time.Minute)) || now.Sub(at) > 30*24*time.Hour {
		return time.Time{}
	}
	return at
}
