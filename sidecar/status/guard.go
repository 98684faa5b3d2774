package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/hosts"
)

// guard refuses requests with a host name that is not weir's, requests from unknown senders, and changes that a page
// of another site requests. A page whose name was pointed at this address has the same origin, but another host name.
func (p *Page) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Ours(r, p.names()) {
			p.refuse(w, "host", http.StatusMisdirectedRequest, fmt.Sprintf("the host %q is not a name of the admin listener: use localhost, its address, the host in admin, or one of hosts", r.Host))
			return
		}
		signs := p.SignIn != nil && r.Method == http.MethodPost && r.URL.Path == "/login"
		if !signs {
			_, until, err := p.known(r)
			if err != nil && !p.forAll(r) {
				p.unknown(w, r, err)
				return
			}
			if !until.IsZero() { // a long response ends with the session
				ctx, cancel := context.WithDeadline(r.Context(), until)
				defer cancel()
				r = r.WithContext(ctx)
			}
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && hosts.Foreign(r, nil) {
			p.refuse(w, "origin", http.StatusForbidden, fmt.Sprintf("a browser sent this request for a page of another site (Origin %q); the admin listener accepts only programs and its own pages", r.Header.Get("Origin")))
			return
		}
		if signs {
			p.login(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Admits reports whether an admitted request would still be admitted. A long response calls it regularly, because a
// reload may have removed the token, the certificates or the name with which it was admitted.
func (p *Page) Admits(r *http.Request) error {
	if !hosts.Ours(r, p.names()) {
		return fmt.Errorf("the host %q is no longer a name of the admin listener", r.Host)
	}
	_, _, err := p.known(r)
	return err
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

// errElsewhere refuses requests from other machines while no authentication is configured.
var errElsewhere = errors.New("without authentication, other machines may read only metrics and health; configure a token with admin: true")

// unknown answers an unknown sender. A browser that requests a page gets the form for a token.
func (p *Page) unknown(w http.ResponseWriter, r *http.Request, err error) {
	a := p.auth()
	page := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && strings.LastIndexByte(r.URL.Path, '/') == 0
	if r.Header.Get("Authorization") != "" {
		if wait := p.sessions.wrong.failed(r, time.Now()); wait > 0 {
			p.refuse(w, "caller", http.StatusTooManyRequests, "too many wrong tokens: try again in "+tooMany(w, wait)+" s")
			return
		}
	}
	if p.SignIn == nil || !page || a == nil || len(a.Tokens) == 0 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		p.refuse(w, "caller", http.StatusUnauthorized, err.Error())
		return
	}
	if p.Refused != nil {
		p.Refused("caller")
	}
	p.SignIn(w, http.StatusUnauthorized, "")
}

func (p *Page) auth() *auth.Auth {
	if p.Auth == nil {
		return nil
	}
	return p.Auth()
}

// known returns the sender's name by its token, certificate or cookie, or an error if it is unknown. The name is ""
// if no authentication is required. until is when a cookie expires, zero for other senders.
func (p *Page) known(r *http.Request) (name string, until time.Time, err error) {
	a := p.auth()
	if a.Open() && auth.Remote(r) {
		return "", until, errElsewhere
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		if name, until, ok := p.sessions.who(r, a, time.Now()); ok {
			if a.ClientCAs != nil {
				_, err = a.Certified(r.TLS)
			}
			return name, until, err
		}
	}
	name, err = a.Check(header, r.TLS)
	return name, time.Time{}, err
}

// forAll reports whether a path needs no authentication: it shows no keys and changes nothing. With admin_auth: all,
// only the style sheet of the sign-in form does not.
func (p *Page) forAll(r *http.Request) bool {
	switch r.URL.Path {
	case "/metrics", "/livez", "/healthz", "/readyz":
		return !p.AuthAll
	case "/style.css":
		return p.SignIn != nil
	}
	return false
}
