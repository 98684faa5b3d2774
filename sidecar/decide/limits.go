package decide

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// A limitsAnswer is the body of GET /v1/limits.
type limitsAnswer struct {
	Upstream string     `json:"upstream"`
	Limits   []keyView  `json:"limits"`
	Unknown  []nameView `json:"unknown,omitempty"`
}

// A keyView is a limitView with its age, if that matters.
type keyView struct {
	limitView
	AgeMS int64 `json:"age_ms,omitempty"`
}

// A nameView is a limit whose remaining units are unknown to this process.
type nameView struct {
	Limit string `json:"limit"`
	Key   string `json:"key"`
}

// limits shows the remaining units of the limits that all callers share, and of limits with keys that the caller may
// name or has. It consumes nothing, and does not count as usage of the keys.
func (s *Server) limits(r *http.Request, caller string) (any, *refuse.Facts) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the query %s cannot be read", quoted(r.URL.RawQuery))
	}
	if f := checkQuery(query); f != nil {
		return nil, f
	}
	u, f := s.upstreamOrCallers(caller, query.Get("upstream"))
	if f != nil {
		return nil, f
	}
	keys, f := s.keysOf(query, u, caller)
	if f != nil {
		return nil, f
	}
	wanted := func(limit.Limit) bool { return true }
	if query.Has("operation") {
		name := operation(new(u.Policy()), query.Get("operation"))
		wanted = func(l limit.Limit) bool { return l.Counts(name) }
	}
	now, a := time.Now(), limitsAnswer{Upstream: u.Name(), Limits: []keyView{}}
	for _, v := range look(u, now, wanted) {
		a.Limits = append(a.Limits, keyView{limitView: v})
	}
	for _, v := range u.LookAt(keys) {
		switch {
		case !wanted(v.Limit):
		case v.Unknown:
			a.Unknown = append(a.Unknown, nameView{v.Limit.Name, v.Key})
		default:
			a.Limits = append(a.Limits, keyView{view(v.Limit, v.Key, v.Level, now), refuse.Ceil(v.Level.Age, time.Millisecond)})
		}
	}
	return a, nil
}

func checkQuery(query url.Values) *refuse.Facts {
	var wrong mistakes
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if values := query[name]; len(values) > 1 {
			wrong.add(name, values[1], "is given twice")
		}
	}
	if query.Get("upstream") == "" {
		wrong.add("upstream", missing{}, "is missing")
	}
	return wrong.failure()
}

// keysOf returns the keys of a query, as the limits know them: each parameter with the name of a scope, and the keys
// that every call of the caller has.
func (s *Server) keysOf(query url.Values, u *weir.Upstream, caller string) (map[string]string, *refuse.Facts) {
	var own []string // scopes whose value is the caller's name
	var known Scopes
	if s.Scopes != nil {
		known = s.Scopes(u.Name())
		own = known.Caller
	}
	var wrong mistakes
	keys, there := make(map[string]string), parameters(known.Declared, u, s.limitsOfCallers())
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch value := query.Get(name); {
		case name == "upstream" || name == "operation":
		case slices.Contains(own, name):
			wrong.add(name, value, "is the caller's name, which weir takes from its token or certificate: leave it out")
		case !slices.Contains(there, name):
			wrong.add(name, missing{}, "unknown parameter; want %s", strings.Join(there, ", "))
		case (&fields{wrong: &wrong}).checkText(name, value, longestKey):
			keys[name] = value
		}
	}
	if f := wrong.failure(); f != nil {
		return nil, f
	}
	keys, f := s.rights(caller).fitLook(keys)
	return known.name(s.veil(keys), caller), f
}

// upstreamOrCallers returns the named upstream, or the limits of callers if name is theirs.
func (s *Server) upstreamOrCallers(caller, name string) (*weir.Upstream, *refuse.Facts) {
	u, f := s.upstream(caller, name)
	if c := s.limitsOfCallers(); f != nil && f.Status == http.StatusNotFound && c != nil && c.Name() == name {
		return c, nil
	}
	return u, f
}

func (s *Server) limitsOfCallers() *weir.Upstream {
	if s.Callers == nil {
		return nil
	}
	return s.Callers()
}

// parameters returns the valid names in a query: upstream, operation, the declared scopes, and each scope of a limit
// of the upstreams, some of which may be nil. The scopes of callers are valid for each upstream, even without a limit
// for them.
func parameters(declared []string, upstreams ...*weir.Upstream) []string {
	names := append([]string{"upstream", "operation"}, declared...)
	for _, u := range upstreams {
		if u == nil {
			continue
		}
		for _, l := range u.Policy().Limits {
			for _, name := range scopes.Names(l.Scope) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
