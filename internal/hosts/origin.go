package hosts

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Foreign reports whether a browser says that it sends the request for a page that is none
// of ours: neither one that we serve, nor of one of the origins, in small letters.
//
// Unlike http.CrossOriginProtection it makes no exception for GET: where credentials are
// added to it, a GET can do and tell anything. What names no origin at all was not sent by a
// browser, or is an address that somebody typed.
func Foreign(r *http.Request, origins []string) bool {
	from, sites := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	listed := len(from) == 1 && slices.Contains(origins, strings.ToLower(from[0]))
	ours := len(from) == 0 || len(from) == 1 && samePlace(from[0], r.Host)
	switch {
	case listed:
		return false
	case !ours: // whatever the browser takes for the same site: a proxy that changes Host may stand in between
		return true
	case len(sites) == 0: // no browser, or an old one
		return false
	}
	return len(sites) > 1 || sites[0] != "same-origin" && sites[0] != "none"
}

// samePlace reports whether an origin is that of the host that was asked. Whether there was
// TLS is not compared: it may have ended before us.
func samePlace(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
