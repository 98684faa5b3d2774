// Package hosts says which hosts a request may name. A page that a browser shows
// can have its own name lead to a loopback address, and then asks there for
// whatever it likes as if it were at home; the name that it asks for gives it
// away.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Name is the name or address in host or host:port, in small letters, without
// brackets and the dot at its end.
func Name(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// Ours reports whether the host that a request names may be meant for us. On a
// loopback address, and where the address is not known, these are: addresses,
// localhost and what is beneath it, and the given names, as Name returns them.
// Where others can reach us, any host is: we have whatever name they know.
func Ours(r *http.Request, names []string) bool {
	host := Name(r.Host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host) {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsValid()
	}
	switch local := r.Context().Value(http.LocalAddrContextKey).(type) {
	case nil:
		return false
	case *net.TCPAddr:
		return !local.IP.IsLoopback()
	}
	return true // a socket that no browser reaches
}
