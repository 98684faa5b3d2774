package config

import (
	"crypto/tls"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/private"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/sidecar/mcpdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// check reports fields that are valid by themselves but do not fit together.
func (d *decoder) check(root *node, f *document) {
	d.checkRoutes(f.places)
	d.checkAdmin(root, f)
	d.checkAccess(root, f)
	d.checkLoops(root.Get("upstreams"), &f.File)
	d.checkTiers(root.Get("upstreams"), &f.File)
	d.checkDeliveries(root, f)
	d.checkCounted(root.Get("upstreams"), f)
	d.checkLabels(f)
	if at := root.Get("upstreams").Get(CallersName); f.Callers != nil && at != nil {
		d.Bad(at, "give it another name", "this name is reserved for the limits of callers in metrics and in the store")
	}
}

// A place is the position of a route in the file.
type place struct {
	proxy.Route
	upstream string
	at       *node
	unsaid   bool // default route of an upstream without routes
}

// An owned is an operation that overrides settings of its route, with its position.
type owned struct {
	proxy.Own
	upstream string
	at       *node
}

// checkRoutes reports duplicate routes.
func (d *decoder) checkRoutes(places []place) {
	type route struct{ host, path string }
	first := make(map[route]place)
	for _, p := range places {
		at := route{p.Host, p.Path}
		before, clash := first[at]
		if !clash {
			first[at] = p
			continue
		}
		what := "upstream " + before.upstream + " already has the route " + showRoute(before.Route) + " in line"
		if p.unsaid {
			what = "has no routes: the default route would be " + showRoute(p.Route) + ", which upstream " + before.upstream + " already has in line"
		}
		d.Bad(p.at, "change the host or path of one of them", "%s %d", what, before.at.Line)
	}
}

func showRoute(r proxy.Route) string {
	host, path := r.Host, r.Path
	if host == "" {
		host = "*"
	}
	if path == "" {
		path = "/"
	}
	return host + path
}

// checkAdmin keeps unauthorized callers away from the admin listener.
func (d *decoder) checkAdmin(root *node, f *document) {
	at := root.Get("admin")
	if at == nil {
		at = root.Get("listen")
	}
	if f.Admin == "" || at == nil {
		return
	}
	if !f.adminOpen && !loopback(f.Admin) {
		d.Bad(at, "use 127.0.0.1, or set admin_open: true",
			"%s: would show upstreams, limits and keys to anyone who reaches it", doc.Quote(f.Admin))
	}
	if same(f.Admin, f.Listen) {
		d.Bad(at, "give admin and listen different ports", "admin %s and listen %s are the same", f.Admin, f.Listen)
	}
}

// same reports whether two listeners would bind the same port of the same address. Port 0 never clashes.
func same(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || strings.Trim(portA, "0") == "" || strings.TrimLeft(portA, "0") != strings.TrimLeft(portB, "0") {
		return false
	}
	return every(hostA) || every(hostB) || strings.EqualFold(hostA, hostB) || loopback(a) && loopback(b)
}

// every reports whether a host means all addresses of the machine.
func every(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// checkLoops reports upstreams that are weir itself: each call would cause another.
func (d *decoder) checkLoops(n *node, f *File) {
	for i := range f.Upstreams {
		u := &f.Upstreams[i]
		if u.URL == nil {
			continue
		}
		to := net.JoinHostPort(u.URL.Hostname(), port(u.URL))
		for _, own := range f.listeners() {
			if own != "" && same(to, own) && (loopback(to) || !everyAddress(own)) {
				d.Bad(n.Get(u.Name).Get("url"), "", "%s: weir itself listens on this address", doc.Quote(u.URL.String()))
				break
			}
		}
	}
}

// listeners returns the addresses on which weir listens with this file.
func (f *File) listeners() []string {
	all := []string{f.Listen, f.Admin}
	if f.Decide != nil {
		all = append(all, f.Decide.Listen, f.Decide.GRPC)
	}
	return all
}

// everyAddress reports whether an address means all addresses of the machine.
func everyAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && every(host)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// checkScopes reports scopes that have no source of values.
func (d *decoder) checkScopes(n *node, u *site) {
	known := slices.Collect(maps.Keys(u.Keys))
	if u.aws != nil {
		known = append(known, awsScopes...)
	}
	if u.hasSockets() {
		known = append(known, websocket.Connection)
	}
	if u.mcp {
		known = append(known, mcpdialect.Tool, mcpdialect.Method)
	}
	if u.llm != nil {
		if known = append(known, llmScopes...); u.llm.Callers {
			known = append(known, d.callerScopes...)
		}
	}
	for _, l := range u.Policy.Limits {
		at := n.Get("limits").Get(l.Name)
		d.knownScopes(at.Get("scope"), l.Scope, known)
		d.knownScope(at.Get("plans"), l.If.Scope, known)
	}
	d.knownScope(n.Get("pause_scope"), u.PauseScope, known)
	d.knownScope(n.Get("breaker").Get("scope"), u.Policy.BreakerScope, append(known, "upstream"))
	if by := n.Get("fair").Get("by"); !inherited(by) { // without the key that the preset names, all calls form one flow
		d.knownScope(by, u.Policy.Fair.By, known)
	}
}

// knownScopes is knownScope for a scope that may be a combination.
func (d *decoder) knownScopes(at *node, scope string, known []string) {
	for _, name := range scopes.Names(scope) {
		d.knownScope(at, name, known)
	}
}

func (d *decoder) knownScope(at *node, scope string, known []string) {
	if scope != "" && at != nil && !slices.Contains(known, scope) {
		d.Bad(at, "add keys: {"+scope+": \"header:X-Name\"}", "%s: unknown scope", doc.Quote(scope))
	}
}

// checkCertificate reports certificate files that are missing or do not match.
func (d *decoder) checkCertificate(t *TLS, root *node) {
	if t == nil {
		return
	}
	missing := false
	for _, f := range []struct{ field, path string }{{"cert", t.Cert}, {"key", t.Key}} {
		if _, err := os.Stat(f.path); err != nil {
			d.Bad(root.Get("tls").Get(f.field), "paths are relative to the directory of the file", "%s", strings.TrimPrefix(err.Error(), "stat "))
			missing = true
		}
	}
	if missing {
		return
	}
	if err := private.Check(t.Key); err != nil {
		d.Bad(root.Get("tls").Get("key"), "", "%v", err)
	}
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		d.Bad(root.Get("tls"), "", "%s", strings.TrimPrefix(err.Error(), "tls: "))
	}
}
