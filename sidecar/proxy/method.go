package proxy

import (
	"fmt"
	"net/http"
	"strings"
)

// method returns an error text for an invalid method, or "". Methods are case-sensitive, but some servers read get as
// GET, and weir chose limits and credentials for the method as written.
func method(r *http.Request) string {
	usual := strings.ToUpper(r.Method)
	if usual == r.Method {
		return ""
	}
	switch usual {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return fmt.Sprintf("methods are in upper case: want %s, not %q", usual, r.Method)
	}
	return ""
}

// echoes reports whether a server returns the request for this method, including the credentials that weir added.
func echoes(method string) bool { return method == http.MethodTrace || method == "TRACK" }

// stay removes an upgrade to TLS or another HTTP version, because weir could not tell requests apart on such a
// connection. RFC 9110, 7.8 lets a server ignore an upgrade.
func stay(h http.Header) {
	for _, wish := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(strings.ToLower(wish), ",") {
			switch name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/"); name {
			case "h2c", "h2", "http", "tls":
				h.Del("Upgrade")
				h.Del("Http2-Settings")
				return
			}
		}
	}
}
