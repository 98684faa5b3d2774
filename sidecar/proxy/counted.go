package proxy

import (
	"net/http"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// Callers count requests against what those who send them may have. A dialect that does so itself
// has no need of them.
type Callers interface {
	// Charge charges a request for an upstream to who sent it, once, however many attempts it takes,
	// until done is told how it was answered; 0 means not at all. Or it says who refused: facts if nobody
	// knows who calls, else an error.
	Charge(r *http.Request, upstream string) (done func(status int), f *refuse.Facts, err error)

	// Consumes reports whether a header, in canonical form, says who calls and is for weir alone.
	Consumes(header string) bool
}

// charge charges the request to its caller, or answers it. done tells that it is over.
func (t *trip) charge(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	if t.to.Callers == nil || !t.counts {
		return func() {}, true
	}
	end, f, err := t.to.Callers.Charge(r, t.to.Name)
	switch {
	case f != nil:
		respond(w, r, f)
		return nil, false
	case err != nil:
		fail(w, r, err)
		return nil, false
	}
	return func() { end(t.cost(impatient(r.Context()))) }, true
}

// cost is the status by which the caller is charged. Who leaves before the answer, or waits no longer for it (late), has
// been served all the same, if anything was sent; who hands in what is delivered later is, when it is stored.
func (t *trip) cost(late bool) int {
	class := t.story.Outcome.Class
	switch {
	case t.brought != 0 && (class == outcome.Throttled || class == outcome.Failed):
		return 0 // whatever the status: AWS throttles with 400, and errors of gRPC have 200
	case t.brought != 0:
		return t.brought
	case t.stored, (t.said == 0 || late) && t.story.Attempts > 0:
		return http.StatusOK
	}
	return 0
}
