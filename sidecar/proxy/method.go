package proxy

import (
	"fmt"
	"net/http"
	"strings"
)

// method says what is wrong with the method of a request. Methods are told apart by their
// letters, but some servers take get for GET, and limits and credentials are for the one that
// weir has read.
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

// echoes reports whether a server that does what the method says would show the request as it came, and
// with it the credentials that weir has added.
func echoes(method string) bool { return method == http.MethodTrace || method == "TRACK" }

// stay keeps a request from leaving HTTP/1.1 for a version of HTTP, or for TLS: on what comes after,
// nobody would know one request from another. RFC 9110 7.8 lets a server ignore such a wish.
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
