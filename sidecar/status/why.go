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

// Stories find what became of calls.
type Stories interface {
	// Find is what is kept of the calls with an ID, the oldest first. An error says that not all could be asked that may have some.
	Find(ctx context.Context, id string) ([]*why.Call, error)
	// In is what this weir decided in the second that begins at an instant; ok is false if that is not known.
	In(second time.Time) (lines []why.Line, ok bool)
}

// An Explained is the answer to why the calls with an ID went as they did.
type Explained struct {
	ID     string  `json:"id"`
	Calls  []Told  `json:"calls"`            // the oldest first
	Error  string  `json:"error,omitempty"`  // why there may be calls that were not found
	Second *Second `json:"second,omitempty"` // that of the ID; only if no call was found
}

// A Told is a call, with what its upstream decided meanwhile.
type Told struct {
	*why.Call
	Then []why.Line `json:"then,omitempty"` // in the second in which it ended; none if that is not known
}

// A Second is what all upstreams decided in one.
type Second struct {
	At    time.Time  `json:"at"`
	Lines []why.Line `json:"lines"` // of those of whose calls some waited or were refused
}

// Explain finds calls by their ID. at, unless zero, is when they were made; their ID may say it.
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

// of is what an upstream decided in the second of an instant.
func of(upstream string, from Stories, at time.Time) (lines []why.Line) {
	all, _ := from.In(at.Truncate(time.Second))
	for _, l := range all {
		if l.Upstream == upstream {
			lines = append(lines, l)
		}
	}
	return lines
}

// Lack is why nothing can be told, in words and as a status of HTTP; 0 if something can.
func (e *Explained) Lack() (code int, words string) {
	switch {
	case len(e.Calls) > 0 || e.Second != nil:
		return 0, ""
	case e.Error != "":
		return http.StatusServiceUnavailable, fmt.Sprintf("this process has no record of %q, and the store cannot be asked: %s", shortened(e.ID), e.Error)
	}
	return http.StatusNotFound, fmt.Sprintf("no record of %q: the call succeeded immediately, is too old, or was made by another process; ask the process whose log contains the ID, and give the time of the call", shortened(e.ID))
}

// Text is the answer as people read it.
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

// lined writes how calls were decided.
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
	_ = w.Flush() // a Builder takes everything
}

// why answers what became of the calls with an ID, in JSON, or as text to who accepts that only.
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

// shortened is as much of an ID as a message repeats.
func shortened(id string) string { return id[:min(len(id), 128)] }
