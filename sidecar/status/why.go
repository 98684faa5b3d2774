package status

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/observe/why"
)

// An Explained is the answer to why the calls with an ID went as they did.
type Explained struct {
	ID    string      `json:"id"`
	Calls []*why.Call `json:"calls"` // the oldest first
}

// Text is the answer as people read it.
func (e *Explained) Text() string {
	texts := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		texts[i] = c.Text()
	}
	return strings.Join(texts, "\n")
}

// why answers what became of the calls with an ID, in JSON, or as text to who accepts that only.
func (p *Page) why(w http.ResponseWriter, r *http.Request) {
	e := Explained{ID: r.PathValue("id")}
	if p.Why != nil {
		e.Calls = p.Why(e.ID)
	}
	switch {
	case len(e.Calls) == 0:
		problem(w, http.StatusNotFound, fmt.Sprintf("nothing is kept of %q: it went well and at once, or is too long ago, or another weir made it; ask the one whose log has the ID", shortened(e.ID)))
	case strings.HasPrefix(r.Header.Get("Accept"), "text/plain"):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, e.Text())
	default:
		answer(w, e)
	}
}

// shortened is as much of an ID as a message repeats.
func shortened(id string) string { return id[:min(len(id), 128)] }
