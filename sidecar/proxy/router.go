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

// A table is everything that is in force at a moment. A request keeps the one it
// began with.
type table struct {
	entries []entry
	targets map[string]*target
	weirs   map[string]*weir.Upstream
	access  Access
	hosts   []string // that routes and the access name
}

type entry struct {
	Route
	target *target
}

// newTable puts upstreams into force, keeping what can be kept of the old one.
func newTable(d Access, upstreams []Upstream, old *table, o weir.Options, own *own) (*table, error) {
	t := &table{targets: make(map[string]*target), weirs: make(map[string]*weir.Upstream), access: d}
	for _, h := range d.Hosts {
		t.hosts = append(t.hosts, hosts.Name(h))
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
		for _, r := range u.routes() {
			r.Host = strings.ToLower(r.Host)
			if r.Host != "" {
				t.hosts = append(t.hosts, r.Host)
			}
			t.entries = append(t.entries, entry{r, to})
		}
	}
	slices.SortStableFunc(t.entries, byPrecedence)
	return t, nil
}

// find is the target of a request, the path to send it on with, what of it follows the
// route's, and the route.
func (t *table) find(r *http.Request) (to *target, path, rest string, by *Route, ok bool) {
	host, raw := hosts.Name(r.Host), rawPath(r)
	for i := range t.entries {
		e := &t.entries[i]
		if e.Host != "" && e.Host != host {
			continue
		}
		rest, under := paths.Rest(e.Path, raw)
		if !under {
			continue
		}
		if e.Strip {
			raw = rest
		}
		return e.target, raw, rest, &e.Route, true
	}
	return nil, "", "", nil, false
}

// stray says why a path is not sent on that could lead elsewhere than its route does. Where
// the path says what is asked for, no dot segments are taken at all: servers differ in
// whether they resolve them, and so would what is asked.
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

// saysWhat reports whether the path of a request says what is asked for.
func (u *Upstream) saysWhat() bool {
	if d, ok := u.Dialect.(interface{ ByPath() bool }); ok && d.ByPath() {
		return true
	}
	return slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Path != "" && o.Path != "/" })
}

// rawPath is the path as it stood in the request, byte for byte.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return path
}

// ours reports whether the host that a request names may be meant for us.
func (t *table) ours(r *http.Request) bool { return hosts.Ours(r, t.hosts) }

// problem says what is wrong with a request before it is sent anywhere.
func (t *table) problem(r *http.Request) (Why, *refuse.Facts) {
	if why, f := formProblem(r); f != nil || t.ours(r) {
		return why, f
	}
	return wrongHost, &refuse.Facts{Status: http.StatusMisdirectedRequest, Code: refuse.ValidationError,
		Message: fmt.Sprintf("unknown host %q: add it to a route, or to hosts", r.Host)}
}

// formProblem returns what is wrong with a request whatever host it names.
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

// all are the upstreams of a table, which may be nil.
func (t *table) all() map[string]*target {
	if t == nil {
		return nil
	}
	return t.targets
}
