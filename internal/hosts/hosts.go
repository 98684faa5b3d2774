// Package hosts decides which hosts a request may name. A web page can make its domain resolve to a loopback address and then
// send requests to it as to its own origin (DNS rebinding). The Host header reveals this.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Name returns the name or address in host or host:port, in lower case, without brackets and a trailing dot.
func Name(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// Ours reports whether the host in a request is valid for this server. On a loopback or unknown address, addresses, localhost
// and its subdomains, and the given names in the form of Name are valid. On addresses that other machines can reach, every host is
// valid, because the server does not know its names.
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
	return true // a socket that browsers cannot reach
}
