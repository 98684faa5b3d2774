package run

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/sidecar/serve"
)

// A hostTable maps hosts to upstreams. It is immutable once it is in use.
type hostTable struct {
	urls     map[string]*url.URL // by upstream name
	exact    map[string]string   // upstream names by host, and by host:port of their URLs
	patterns []hostPattern       // longest first
	through  []string
}

type hostPattern struct {
	pattern, upstream string
}

func newHostTable(upstreams []serve.Hosts, through []string) *hostTable {
	t := &hostTable{urls: make(map[string]*url.URL), exact: make(map[string]string)}
	for _, host := range through {
		t.through = append(t.through, strings.ToLower(host))
	}
	for _, u := range upstreams {
		t.urls[u.Upstream] = u.URL
		for _, host := range u.Hosts {
			if strings.Contains(host, "*") {
				t.patterns = append(t.patterns, hostPattern{host, u.Upstream})
			} else if t.exact[host] == "" { // the first in the file wins
				t.exact[host] = u.Upstream
			}
		}
		if host := strings.ToLower(u.URL.Host); t.exact[host] == "" {
			t.exact[host] = u.Upstream
		}
	}
	slices.SortStableFunc(t.patterns, func(a, b hostPattern) int { return len(b.pattern) - len(a.pattern) })
	return t
}

// find returns the upstream of host or host:port, or "" if there is none.
func (t *hostTable) find(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if slices.Contains(t.through, name) {
		return ""
	}
	if u := t.exact[host]; u != "" {
		return u
	}
	if name != host { // a non-default port is another server
		return ""
	}
	for _, p := range t.patterns {
		if matches(p.pattern, name) {
			return p.upstream
		}
	}
	return ""
}

// matches reports whether a host matches a pattern, in which * stands for one or more characters.
func matches(pattern, host string) bool {
	before, after, more := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(host, before)
	if !ok || !more {
		return ok && rest == ""
	}
	for i := 1; i <= len(rest); i++ {
		if matches(after, rest[i:]) {
			return true
		}
	}
	return false
}
