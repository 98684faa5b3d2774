package proxy

import (
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/hosts"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// isLook reports whether a request is about deliveries, and thus for no upstream.
func isLook(r *http.Request) bool { return strings.HasPrefix(r.URL.Path+"/", DeliveriesPath) }

// look answers a caller's request about its deliveries. The caller's token or certificate identifies the owner. Where
// callers have no names, everyone who knows the ID has access.
func (p *Proxy) look(w http.ResponseWriter, r *http.Request) {
	t := p.table.Load()
	if why, f := t.problem(r); f != nil {
		t.access.refuse(w, why, f)
		return
	}
	who, f := t.access.enter(r)
	if f != nil {
		t.access.stranger(w, f)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && hosts.Foreign(r, t.access.Origins) {
		t.access.refuse(w, wrongOrigin, &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Final: true, Message: "a browser sent this request for a page of another site; to allow it, add the origin to origins"})
		return
	}
	if f := t.access.take(r, who); f != nil {
		f.RetryAfter(w.Header())
		f.Write(w)
		return
	}
	defer t.access.leave(r, who)
	deliveries.API{Queue: *p.later.Load()}.Serve(w, r, strings.TrimPrefix(r.URL.Path+"/", DeliveriesPath), deliveries.Caller{Name: who.Name})
}
