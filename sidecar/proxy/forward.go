package proxy

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/seed1158cd35/weir/httpx"
)

// Forward sends a request on to its own host under the policy of an upstream. at is scheme and host of that host, which need not be
// the upstream's. No route, token or host of the configuration applies: the caller has checked who calls, and which host it wants.
// Headers are passed on as by a forward proxy, including those that a server would not accept from strangers (X-Forwarded-*).
// Responses keep their Location. An error means that there is no such upstream, or that the response broke off.
func (p *Proxy) Forward(upstream string, at *url.URL, w http.ResponseWriter, r *http.Request) error {
	t := p.table.Load()
	to := t.targets[upstream]
	if to == nil {
		return fmt.Errorf("proxy: unknown upstream %q", upstream)
	}
	trip := &trip{to: to, path: rawPath(r), at: at, id: correlationOf(r), table: t}
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
