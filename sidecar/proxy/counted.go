package proxy

import (
	"net/http"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// Callers counts requests against the limits of their callers. A dialect that counts requests itself does not use it.
type Callers interface {
	// Charge charges a request for an upstream to its caller, once for all attempts. tool is the tool that it calls, or
	// "". done settles the charge with the status of the response (0 means no charge), and with the limit or other reason
	// by which weir refused it, or "". If the request is refused, Charge returns facts for an unknown caller, otherwise
	// an error.
	Charge(r *http.Request, upstream, tool string) (done func(status int, refusedBy string), f *refuse.Facts, err error)

	// Consumes reports whether a header, in canonical form, identifies the caller and is for weir alone.
	Consumes(header string) bool
}

// charge charges the request to its caller, or answers it if it is refused. The caller calls done when the request
// ends.
func (t *trip) charge(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	if t.to.Callers == nil || !t.counts {
		return func() {}, true
	}
	if x, ok := t.exchange.(httpx.Uncharged); ok && x.Uncharged() {
		return func() {}, true
	}
	tool := ""
	if x, ok := t.exchange.(httpx.ToolCaller); ok {
		tool = x.CalledTool()
	}
	end, f, err := t.to.Callers.Charge(r, t.to.Name, tool)
	switch {
	case f != nil:
		t.lacksKey(f)
		respond(w, r, f)
		return nil, false
	case err != nil:
		fail(w, r, err)
		return nil, false
	}
	return func() {
		if t.story.Attempts > 0 {
			t.refusedBy = "" // only another attempt was refused
		}
		end(t.cost(impatient(r.Context())), t.refusedBy)
	}, true
}

// lacksKey reports a refusal of a request without a value for a required scope of callers.
func (t *trip) lacksKey(f *refuse.Facts) {
	if f.Missing == "" {
		return
	}
	t.table.access.tell(lacksKey)
	if t.table.access.LacksKey != nil {
		t.table.access.LacksKey(t.id, t.to.Name, f.Missing, f.Message)
	}
}

// cost returns the status by which the caller is charged. A caller that disconnects or times out (late) before the
// response is charged if an attempt was made. A stored delivery is charged as well.
func (t *trip) cost(late bool) int {
	class := t.story.Outcome.Class
	switch {
	case t.brought != 0 && (class == outcome.Throttled || class == outcome.Failed):
		return 0 // regardless of status: AWS throttles with 400, and gRPC errors have 200
	case t.brought != 0:
		return t.brought
	case t.stored, (t.said == 0 || late) && t.story.Attempts > 0:
		return http.StatusOK
	}
	return 0
}
