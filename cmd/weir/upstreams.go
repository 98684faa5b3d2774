package main

import (
	"github.com/seed1158cd35/weir/config"
	"github.com/seed1158cd35/weir/proxy"
)

// upstreams are those of a file, as the proxy takes them.
func upstreams(f *config.File) []proxy.Upstream {
	var out []proxy.Upstream
	for _, u := range f.Upstreams {
		to := proxy.Upstream{Name: u.Name, URL: u.URL, Policy: u.Policy, Replay: u.Replay, Keys: map[string]proxy.Source{}}
		for _, r := range u.Routes {
			to.Routes = append(to.Routes, proxy.Route(r))
		}
		for scope, s := range u.Keys {
			to.Keys[scope] = proxy.Source{Kind: string(s.Kind), Name: s.Name}
		}
		out = append(out, to)
	}
	return out
}
