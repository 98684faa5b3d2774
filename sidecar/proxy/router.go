package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/hosts"
	"github.com/seed1158cd35/weir/internal/paths"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// A table is the configuration in force at one moment. A request keeps the table that it began with.
type table struct {
	entries []entry
	routes  map[place][]int // the entries by place, in the order of entries
	targets map[string]*target
	weirs   map[string]*weir.Upstream
	access  Access
	hosts   map[string]bool // from routes and the access, in the form of hosts.Name
}

type entry struct {
	Route
	target *target
}

// A place is what a request must have for a route to match: the route's host, or "" for every host, and the first
// segment of its path, or "" for every path. A request has at most four places, however many routes there are.
type place struct{ host, segment string }

// newTable returns a table of upstreams. It reuses the old table's state where possible.
func newTable(d Access, upstreams []Upstream, old *table, o weir.Options, own *own) (*table, error) {
	t := &table{targets: make(map[string]*target), weirs: make(map[string]*weir.Upstream), access: d, hosts: make(map[string]bool)}
	for _, h := range d.Hosts {
		t.hosts[hosts.Name(h)] = true
	}
	for _, u := range upstreams {
		before := (*target)(nil)
		if old != nil {
			before = old.targets[u.Name]
		}
		to, err := newTarget(u, before, o, own)
		if err != nil {
			return nil, err
		}
		t.targets[u.Name], t.weirs[u.Name] = to, to.weir
		t.add(to)
		for _, r := range u.Routes {
			if r.Host != "" {
				t.hosts[strings.ToLower(r.Host)] = true
			}
		}
	}
	t.index()
	return t, nil
}

// add adds the routes of a target. index must follow.
func (t *table) add(to *target) {
	for _, r := range to.routes() {
		r.Host = strings.ToLower(r.Host)
		t.entries = append(t.entries, entry{r, to})
	}
}

// index sorts the routes and makes them ready for find.
func (t *table) index() {
	slices.SortStableFunc(t.entries, byPrecedence)
	t.routes = make(map[place][]int, len(t.entries))
	for i, e := range t.entries {
		at := place{e.Host, paths.First(strings.TrimLeft(e.Path, "/"))}
		t.routes[at] = append(t.routes[at], i)
	}
}

// find returns the target of a request, the path to send, the part of the path after the route's path, and the route.
func (t *table) find(r *http.Request) (to *target, path, rest string, by *Route, ok bool) {
	return t.lookup(hosts.Name(r.Host), rawPath(r))
}

// lookup is find for a host in the form of hosts.Name and a raw path.
func (t *table) lookup(host, raw string) (to *target, path, rest string, by *Route, ok bool) {
	first := ""
	if after, ok := strings.CutPrefix(raw, "/"); ok {
		first = paths.First(after)
	}
	for _, at := range [...]place{{host, first}, {host, ""}, {"", first}, {"", ""}} {
		for _, i := range t.routes[at] {
			e := &t.entries[i]
			rest, under := paths.Rest(e.Path, raw)
			if !under {
				continue
			}
			if e.Strip {
				raw = rest
			}
			return e.target, raw, rest, &e.Route, true
		}
	}
	return nil, "", "", nil, false
}

// A Router finds the upstreams of requests as a Proxy does, without serving them. It is safe for concurrent use.
type Router struct{ table table }

// NewRouter returns a router for upstreams.
func NewRouter(upstreams []Upstream) *Router {
	r := new(Router)
	for i := range upstreams {
		r.table.add(&target{Upstream: upstreams[i]})
	}
	r.table.index()
	return r
}

// Find returns the name of the upstream to which a request belongs, and the raw path that is sent to it. The host may
// be unknown ("").
func (r *Router) Find(host, rawPath string) (upstream, path string, ok bool) {
	to, path, _, _, ok := r.table.lookup(hosts.Name(host), rawPath)
	if !ok {
		return "", "", false
	}
	return to.Name, path, true
}

// stray refuses a path that could lead outside of its route. Where the path determines the operation, it refuses all
// dot segments: servers differ in whether they resolve them, so the operation would be ambiguous.
func (t *target) stray(rest string) (Why, *refuse.Facts) {
	message := ""
	switch {
	case paths.Climbs(rest):
		message = "the path leads above the path of its route"
	case t.byPath && paths.Dotted(rest):
		message = "the path has dot segments (. or ..), and could be read as the path of another operation: send it without them"
	default:
		return "", nil
	}
	return wrongForm, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: message, Final: true}
}

// saysWhat reports whether the path of a request determines its operation.
func (u *Upstream) saysWhat() bool {
	if d, ok := u.Dialect.(interface{ ByPath() bool }); ok && d.ByPath() {
		return true
	}
	return slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Path != "" && o.Path != "/" })
}

// rawPath returns the path of the request, byte for byte.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return path
}

// ours reports whether the request's host may be a host of weir.
func (t *table) ours(r *http.Request) bool { return t.hosts[hosts.Name(r.Host)] || hosts.Ours(r, nil) }

// problem returns why a request is malformed, or that it is for another host.
func (t *table) problem(r *http.Request) (Why, *refuse.Facts) {
	if why, f := formProblem(r); f != nil || t.ours(r) {
		return why, f
	}
	return wrongHost, &refuse.Facts{Status: http.StatusMisdirectedRequest, Code: refuse.ValidationError,
		Message: fmt.Sprintf("unknown host %q: add it to a route, or to hosts", r.Host)}
}

// formProblem returns why a request is malformed. It does not check the host.
func formProblem(r *http.Request) (Why, *refuse.Facts) {
	bad := func(why Why, status int, message string) (Why, *refuse.Facts) {
		return why, &refuse.Facts{Status: status, Code: refuse.ValidationError, Message: message}
	}
	switch {
	case r.URL.IsAbs() || r.Method == http.MethodConnect:
		return bad(wrongForm, http.StatusBadRequest, "weir is not a forward proxy: send a path, not a complete URL")
	case r.RequestURI == "*":
		return bad(wrongForm, http.StatusBadRequest, "OPTIONS * belongs to no upstream")
	case method(r) != "":
		return bad(wrongForm, http.StatusBadRequest, method(r))
	case strings.ContainsFunc(r.RequestURI, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return bad(wrongForm, http.StatusBadRequest, "the path or the query contains a space or a control character: escape it, such as %20")
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		return bad(wrongForm, http.StatusBadRequest, "the request has no Host")
	}
	return "", nil
}

// all returns the upstreams of a table, which may be nil.
func (t *table) all() map[string]*target {
	if t == nil {
		return nil
	}
	return t.targets
}
