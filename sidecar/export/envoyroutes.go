package export

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A way is a route of the configuration.
type way struct {
	of *config.Upstream
	proxy.Route
}

// hosts returns the virtual hosts of the upstreams. weir looks up a path at its host and then among the routes for
// any host. Envoy uses only one virtual host, so each one also contains the routes for any host.
func (l *ledger) hosts(all []*config.Upstream) []virtualHost {
	var ways []way
	var names []string
	for _, u := range all {
		for _, r := range u.Routes {
			ways = append(ways, way{u, r})
			if !slices.Contains(names, r.Host) {
				names = append(names, r.Host)
			}
		}
	}
	slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	slices.Sort(names)
	var found []virtualHost
	for _, name := range names {
		h := virtualHost{Name: cmp.Or(name, "any"), Domains: []string{domainOf(name)}}
		for _, host := range slices.Compact([]string{name, ""}) {
			for _, w := range ways {
				if w.Host == host {
					h.Routes = append(h.Routes, l.routes(w)...)
				}
			}
		}
		found = append(found, h)
	}
	return found
}

// domainOf returns a host in Envoy's notation.
func domainOf(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return cmp.Or(host, "*")
}

// routes returns the routes of one way: one per operation, in order, and one for all other requests.
func (l *ledger) routes(w way) (all []route) {
	for _, o := range w.of.Policy.Operations {
		match, some := w.operation(o)
		if !some {
			continue
		}
		all = append(all, l.route(w, o.Name, match))
		if len(o.Methods) == 0 && match.Segments+match.Prefix == w.whole().Segments+w.whole().Prefix {
			return all // no requests are left
		}
	}
	return append(all, l.route(w, weir.DefaultOperation, w.whole()))
}

// whole matches everything that the way matches.
func (w way) whole() routeMatch {
	if path := strings.Trim(w.Path, "/"); path != "" {
		return routeMatch{Segments: "/" + path}
	}
	return routeMatch{Prefix: "/"}
}

// sent returns the prefix of the paths that the way forwards.
func (w way) sent() string {
	base := strings.TrimSuffix(w.of.URL.EscapedPath(), "/")
	if path := strings.Trim(w.Path, "/"); path != "" && !w.Strip {
		return base + "/" + path + "/"
	}
	return base + "/"
}

// operation matches the requests of the way that belong to an operation, whose path is the forwarded one. It reports
// whether there can be any.
func (w way) operation(o weir.Operation) (m routeMatch, some bool) {
	sent := w.sent()
	switch {
	case strings.HasPrefix(sent, o.Path):
		m = w.whole()
	case strings.HasPrefix(o.Path, sent):
		m.Prefix = strings.TrimSuffix("/"+strings.Trim(w.Path, "/"), "/") + "/" + strings.TrimPrefix(o.Path, sent)
	default:
		return m, false
	}
	if len(o.Methods) > 0 {
		m.Headers = []headerMatch{{":method", stringMatch{regex{strings.Join(o.Methods, "|")}}}}
	}
	return m, true
}

func (l *ledger) route(w way, operation string, m routeMatch) route {
	u := w.of
	r := route{u.Name + "." + operation, m, routeAction{Cluster: u.Name, Host: u.URL.Host}}
	came := strings.TrimSuffix("/"+strings.Trim(w.Path, "/"), "/")
	switch base := strings.TrimSuffix(u.URL.EscapedPath(), "/"); {
	case w.Strip && came != "":
		r.Route.Rewrite = &rewrite{regex{"^" + regexp.QuoteMeta(came) + "/?"}, base + "/"}
	case base != "":
		r.Route.Rewrite = &rewrite{regex{"^/"}, base + "/"}
	}
	for i := range u.Policy.Limits {
		one := &u.Policy.Limits[i]
		if !one.Counts(operation) {
			continue
		}
		actions := []action{{Generic: &genericKey{upstreamKey, u.Name}}, {Generic: &genericKey{limitKey, one.Name}}}
		if one.Scope != "" {
			if _, a, ok := l.key(u, one); ok {
				actions = append(actions, a)
			}
		}
		r.Route.Limits = append(r.Route.Limits, rateLimit{actions})
	}
	return r
}
