package status

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed1158cd35/weir/internal/callid"
	"github.com/seed1158cd35/weir/observe/why"
)

// Stories returns records of calls.
type Stories interface {
	// Find returns the records of calls with an ID, the oldest first. An error means that some stores could not be
	// asked.
	Find(ctx context.Context, id string) ([]*why.Call, error)
	// In returns this weir's decisions in the second that begins at an instant. ok is false if they are unknown.
	In(second time.Time) (lines []why.Line, ok bool)
}

// An Explained explains the results of the calls with an ID.
type Explained struct {
	ID     string  `json:"id"`
	Calls  []Told  `json:"calls"`            // the oldest first
	Error  string  `json:"error,omitempty"`  // why some calls may be missing
	Second *Second `json:"second,omitempty"` // the second of the ID; only if no call was found
}

// A Told is a call, with its upstream's decisions at that time.
type Told struct {
	*why.Call
	Then []why.Line `json:"then,omitempty"` // in the second in which it ended; empty if unknown
}

// A Second contains the decisions of all upstreams in one second.
type Second struct {
	At    time.Time  `json:"at"`
	Lines []why.Line `json:"lines"` // for upstreams at which calls waited or were refused
}

// Explain finds calls by their ID. at is when they were made. If it is zero, the time is taken from the ID if
// possible.
func (p *Page) Explain(ctx context.Context, id string, at time.Time) *Explained {
	e, from := &Explained{ID: id}, p.Why
	if from == nil {
		return e
	}
	calls, err := from.Find(ctx, id)
	if err != nil {
		e.Error = err.Error()
	}
	for _, c := range calls {
		t := Told{Call: c}
		if c.Weir == "" {
			t.Then = of(c.Upstream, from, c.At)
		}
		e.Calls = append(e.Calls, t)
	}
	if at.IsZero() {
		at, _ = callid.Second(id)
	}
	if len(calls) == 0 && !at.IsZero() {
		at = at.Truncate(time.Second)
		if lines, ok := from.In(at); ok {
			e.Second = &Second{At: at, Lines: lines}
		}
	}
	return e
}

// of returns an upstream's decisions in the second of an instant.
func of(upstream string, from Stories, at time.Time) (lines []why.Line) {
	all, _ := from.In(at.Truncate(time.Second))
	for _, l := range all {
		if l.Upstream == upstream {
			lines = append(lines, l)
		}
	}
	return lines
}

// Lack returns why there is no explanation, as an HTTP status and in words; 0 if there is one.
func (e *Explained) Lack() (code int, words string) {
	switch {
	case len(e.Calls) > 0 || e.Second != nil:
		return 0, ""
	case e.Error != "":
		return http.StatusServiceUnavailable, fmt.Sprintf("this process has no record of %q, and the store cannot be asked: %s", shortened(e.ID), e.Error)
	}
	return http.StatusNotFound, fmt.Sprintf("no record of %q: the call succeeded immediately, is too old, or was made by another process; ask the process whose log contains the ID, and give the time of the call", shortened(e.ID))
}

// Text returns the explanation as text.
func (e *Explained) Text() string {
	var b strings.Builder
	for i, c := range e.Calls {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(c.Text())
		if len(c.Then) > 0 {
			b.WriteString("\n  Decisions in the second in which it ended:\n")
			lined(&b, c.Then)
		}
	}
	if s := e.Second; s != nil {
		fmt.Fprintf(&b, "No record of %s. ", shortened(e.ID))
		if len(s.Lines) == 0 {
			fmt.Fprintf(&b, "In the same second (%s) this process allowed all calls immediately.\n", s.At.UTC().Format(time.RFC3339))
		} else {
			fmt.Fprintf(&b, "These are the decisions of this process in the same second (%s), with lines of the current configuration:\n", s.At.UTC().Format(time.RFC3339))
			lined(&b, s.Lines)
		}
	}
	if e.Error != "" {
		fmt.Fprintf(&b, "There may be more calls with this ID: %s\n", e.Error)
	}
	return b.String()
}

// lined writes decisions.
func lined(b *strings.Builder, lines []why.Line) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		limit := ""
		if l.Limit != "" {
			limit = "by limit " + l.Limit
		}
		if l.By != "" {
			limit += " of each " + l.By
		}
		fmt.Fprintf(w, "  %s\t%s\t%d %s\t%s\t%s\t%s\n", l.From.UTC().Format("15:04:05.0"), strings.TrimSpace(l.Upstream+" "+l.Operation), l.N, l.Decision, limit, l.Rule, l.At)
	}
	_ = w.Flush() // a Builder never fails
}

// why explains the calls with an ID, in JSON, or as text for clients that accept only text.
func (p *Page) why(w http.ResponseWriter, r *http.Request) {
	id, at := r.PathValue("id"), time.Time{}
	if v := r.URL.Query().Get("at"); v != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, v); err != nil {
			problem(w, http.StatusBadRequest, fmt.Sprintf("at %q: want a time such as 2006-01-02T15:04:05Z", shortened(v)))
			return
		}
	}
	e := p.Explain(r.Context(), id, at)
	switch code, lack := e.Lack(); {
	case code != 0:
		problem(w, code, lack)
	case strings.HasPrefix(r.Header.Get("Accept"), "text/plain"):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, e.Text())
	default:
		answer(w, e)
	}
}

// shortened returns the part of an ID that a message contains.
func shortened(id string) string { return id[:min(len(id), 128)] }
