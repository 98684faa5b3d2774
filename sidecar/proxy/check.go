package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
)

// Check returns all errors of the upstreams, individually and in combination. Set and SetAll call it first.
func Check(upstreams []Upstream) error {
	var errs []error
	names, routes := make(map[string]bool), make(map[Route]string)
	for i := range upstreams {
		u := &upstreams[i]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("upstream %q: %w", u.Name, fmt.Errorf(format, args...)))
		}
		if u.Name == "" || names[u.Name] {
			bad("name: must be set and unique")
		}
		names[u.Name] = true
		if u.URL == nil || u.URL.Host == "" || u.URL.Scheme != "http" && u.URL.Scheme != "https" {
			bad("url %v: want http or https and a host", u.URL)
		}
		if err := u.Policy.Validate(); err != nil {
			bad("%w", err)
		}
		for name := range u.Own {
			if !slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Name == name }) {
				bad("operation %q: is not declared", name)
			}
		}
		for _, r := range u.routes() {
			if r.Path != "" && r.Path[0] != '/' {
				bad("route %q: must begin with a slash", r.Path)
			}
			if r.WebSocket && u.Dialect != nil {
				bad("route %q: a WebSocket route cannot have a dialect, which reads calls and not messages", r.Path)
			}
			place := r.place()
			if other, ok := routes[place]; ok {
				bad("route %q: upstream %q already has it", r.Host+r.Path, other)
			}
			routes[place] = u.Name
		}
	}
	return errors.Join(errs...)
}

// place identifies the requests that the route matches. It is comparable.
func (r Route) place() Route {
	return Route{Host: strings.ToLower(r.Host), Path: strings.TrimSuffix(r.Path, "/")}
}
