// Package proxy is the sidecar: it takes requests for the upstreams it was
// configured with, sends them on under their policies, and streams the answers
// back. What it passes on it does not change: raw path and query, headers, body.
package proxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
)

// An Upstream is an API that requests are sent on to.
type Upstream struct {
	Name    string
	URL     *url.URL // scheme and host, and perhaps a path that is put before the request's
	Routes  []Route  // how requests find it; none means the path /NAME/, stripped
	Policy  weir.Policy
	Replay  int64             // how much of a body is kept to send it again; 0 means weir.DefaultReplay, below 0 nothing
	MaxBody int64             // the largest body that is taken; 0 means any
	Keys    map[string]Source // where the values of scopes come from
}

// A Route leads requests to an upstream. Host and Path must both match; of
// several routes the one with a host wins, then the one with the longest path.
type Route struct {
	Host  string // without port, in any case; "" means any
	Path  string // a prefix of whole segments; "" means any
	Strip bool   // take Path off before sending on
}

// A Source says where the value of a scope comes from.
type Source struct {
	Kind string // Header, Query or Remote
	Name string // of the header or the parameter
}

// The kinds of a Source.
const (
	Header = "header"
	Query  = "query"
	Remote = "remote" // the caller's address
)

// secretHeaders hold credentials: as keys they are kept as a hash, so that they
// stand in no log and on no page.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token"}

// secretParameters do the same in a query; in small letters.
var secretParameters = []string{"key", "api_key", "api-key", "apikey", "access_token", "token", "sig", "signature", "x-amz-security-token", "x-amz-signature"}

// value is the value of a scope for a request.
func (s Source) value(r *http.Request) string {
	switch s.Kind {
	case Remote:
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			return r.RemoteAddr
		}
		return host
	case Query:
		return masked(r.URL.Query().Get(s.Name), slices.Contains(secretParameters, strings.ToLower(s.Name)))
	}
	name := http.CanonicalHeaderKey(s.Name)
	return masked(r.Header.Get(name), slices.Contains(secretHeaders, name))
}

// masked is a value, or what tells it from others if it is a secret.
func masked(v string, secret bool) string {
	if v == "" || !secret {
		return v
	}
	sum := sha256.Sum256([]byte(v))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// A target is an upstream in use.
type target struct {
	Upstream
	weir      *weir.Upstream
	transport *weir.Transport
}

// newTarget puts an upstream into use. What is in use by that name already goes
// on, with the new policy; its connections are kept if they may be.
func newTarget(c Upstream, old *target, events weir.Events) (*target, error) {
	t := &target{Upstream: c}
	if old != nil && old.URL.String() == c.URL.String() {
		if err := old.weir.Set(c.Policy); err != nil {
			return nil, err
		}
		t.weir = old.weir
	} else {
		u, err := weir.New(c.Name, c.Policy, weir.Options{Events: events})
		if err != nil {
			return nil, err
		}
		t.weir = u
	}
	timeouts := t.weir.Policy().Timeouts
	base := http.RoundTripper(nil)
	if old != nil && old.weir == t.weir && reflect.DeepEqual(old.base().Timeouts, timeouts) {
		base = old.transport.Base
	} else {
		base = withTimeouts{weir.NewBase(timeouts, 0), timeouts}
	}
	t.transport = &weir.Transport{Upstream: t.weir, Base: base, Call: t.call, Replay: c.Replay}
	return t, nil
}

// withTimeouts is a base transport that knows what it was made for.
type withTimeouts struct {
	*http.Transport
	Timeouts weir.Timeouts
}

func (t *target) base() withTimeouts { return t.transport.Base.(withTimeouts) }

// call is what the policy needs to know of a request.
func (t *target) call(r *http.Request) weir.Call {
	c := weir.Call{ID: correlation(r.Context())}
	if len(t.Keys) > 0 {
		c.Keys = make(map[string]string, len(t.Keys))
		for scope, source := range t.Keys {
			c.Keys[scope] = source.value(r)
		}
	}
	if r.ContentLength > 0 && t.countsBytes() {
		c.Cost = map[string]int64{"bytes": r.ContentLength}
	}
	return c
}

func (t *target) countsBytes() bool {
	for _, l := range t.Policy.Limits {
		if l.Unit == "bytes" {
			return true
		}
	}
	return false
}

// routes are the routes in force.
func (u *Upstream) routes() []Route {
	if len(u.Routes) == 0 {
		return []Route{{Path: "/" + u.Name + "/", Strip: true}}
	}
	return u.Routes
}

// byPrecedence sorts routes so that the first that matches is the right one.
func byPrecedence(a, b entry) int {
	if (a.Host != "") != (b.Host != "") {
		return cmp.Compare(len(b.Host), len(a.Host))
	}
	return cmp.Compare(len(b.Path), len(a.Path))
}
