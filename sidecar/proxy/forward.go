package proxy

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/seed1158cd35/weir/httpx"
)

// Forward sends a request to its own host under the policy of an upstream. at is scheme and host of that host, which
// may differ from the upstream's URL. Routes, tokens and hosts of the configuration do not apply: the caller of Forward
// has checked who calls and which host is requested.
//
// Headers are forwarded as by a forward proxy, including headers that a server would not accept from strangers
// (X-Forwarded-*). Responses keep their Location. Forward returns an error if there is no such upstream or the response
// breaks off.
func (p *Proxy) Forward(upstream string, at *url.URL, w http.ResponseWriter, r *http.Request) error {
	t := p.table.Load()
	to := t.targets[upstream]
	if to == nil {
		return fmt.Errorf("proxy: unknown upstream %q", upstream)
	}
	trip := &trip{to: to, path: rawPath(r), at: at, id: correlationOf(r), table: t, counts: true}
	w.Header()[httpx.CorrelationHeader] = []string{trip.id}
	_, f := formProblem(r)
	if f == nil {
		_, f = to.stray(trip.path)
	}
	if f != nil {
		f.Write(w)
		return nil
	}
	p.send(w, r, trip)
	return trip.cut
}
