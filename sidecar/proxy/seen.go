package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// look shows a caller a delivery: to whoever handed it in, by its token or certificate, and
// where callers have no names to whoever knows the ID, which nobody can guess.
func (p *Proxy) look(w http.ResponseWriter, r *http.Request) {
	t := p.table.Load()
	if why, f := t.problem(r); f != nil {
		t.door.refuse(w, why, f)
		return
	}
	who, f := t.door.enter(r)
	if f != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		t.door.refuse(w, noCaller, f)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refusal(w, http.StatusMethodNotAllowed, refuse.ValidationError, "a delivery can be looked at with GET", nil)
		return
	}
	d, err := (*p.later.Load()).Get(r.Context(), strings.TrimPrefix(rawPath(r), DeliveriesPath))
	switch {
	case errors.Is(err, delivery.ErrNotFound), err == nil && d.Owner != "" && d.Owner != who.Name:
		missing(w)
	case err != nil:
		w.Header().Set("Retry-After", "1")
		refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, "the deliveries' file does not answer", nil)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(receiptOf(&d))
	}
}

func missing(w http.ResponseWriter) {
	refusal(w, http.StatusNotFound, "DELIVERY_NOT_FOUND", "there is no such delivery", nil)
}
