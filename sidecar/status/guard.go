package status

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/hosts"
)

// guard turns away requests that name a host that is not ours, those of whom nobody knows who
// sends them, and what would change something for a page of another site. A page whose name
// was made to lead here is of the same origin, but names its own host.
func (p *Page) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Ours(r, p.names()) {
			p.refuse(w, "host", http.StatusMisdirectedRequest, fmt.Sprintf("the host %q is not the admin listener's: ask for localhost, its address, the host in admin, or one of hosts", r.Host))
			return
		}
		if err := p.known(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			p.refuse(w, "caller", http.StatusUnauthorized, err.Error())
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && hosts.Foreign(r, nil) {
			p.refuse(w, "origin", http.StatusForbidden, fmt.Sprintf("a browser sent this for a page of another site (Origin %q); the admin listener is for programs", r.Header.Get("Origin")))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (p *Page) names() (all []string) {
	if p.Hosts != nil {
		for _, name := range p.Hosts() {
			all = append(all, hosts.Name(name))
		}
	}
	return all
}

func (p *Page) refuse(w http.ResponseWriter, why string, status int, message string) {
	if p.Refused != nil {
		p.Refused(why)
	}
	problem(w, status, message)
}

// errElsewhere is for those who come from another machine to a weir that has been told of
// nobody.
var errElsewhere = errors.New("from elsewhere only metrics and health are for everyone; give weir admin_tokens or admin_client_ca")

// known says why nobody knows who asks, nil if that is known or does not matter.
func (p *Page) known(r *http.Request) error {
	if !p.AuthAll && forAll[r.URL.Path] {
		return nil
	}
	var a *auth.Auth
	if p.Auth != nil {
		a = p.Auth()
	}
	if a.Open() && auth.Remote(r) {
		return errElsewhere
	}
	_, err := a.Check(r.Header.Get("Authorization"), r.TLS)
	return err
}

// forAll are the paths that show no keys and change nothing.
var forAll = map[string]bool{"/metrics": true, "/livez": true, "/healthz": true, "/readyz": true}
