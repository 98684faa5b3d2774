package hosts

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Foreign reports whether a browser sends the request for a page of another site: neither this server's nor of the given
// origins, which are in lower case.
//
// Unlike http.CrossOriginProtection it also applies to GET: with added credentials a GET can have any effect. A request without
// an origin was not sent by a browser, or the user typed the address.
func Foreign(r *http.Request, origins []string) bool {
	from, sites := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	listed := len(from) == 1 && slices.Contains(origins, strings.ToLower(from[0]))
	ours := len(from) == 0 || len(from) == 1 && samePlace(from[0], r.Host)
	switch {
	case listed:
		return false
	case !ours: // independent of Sec-Fetch-Site, because a proxy may change Host
		return true
	case len(sites) == 0: // no browser, or an old one
		return false
	}
	return len(sites) > 1 || sites[0] != "same-origin" && sites[0] != "none"
}

// samePlace reports whether an origin has the requested host. It ignores the scheme, because a proxy may terminate TLS.
func samePlace(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
