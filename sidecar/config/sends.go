package config

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/seed1158cd35/weir/internal/veil"
)

// readSends reads headers that weir adds.
func readSends(d *decoder, n *node, u *site) {
	u.sends = make(map[string]string, len(n.Fields))
	for _, e := range d.named(n) {
		variable, ok := word.read(d, e.Value)
		name := http.CanonicalHeaderKey(e.Name)
		switch {
		case !ok:
		case !token.MatchString(e.Name):
			d.Bad(e.Key, "", "is not the name of a header")
		case !veil.Secret(name):
			d.Bad(e.Key, "write credentials: {Authorization: VARIABLE}", "%s is not a header for credentials; let the caller send it", name)
		default:
			u.sends[name] = variable
		}
	}
}

// SendsOf returns the headers that weir adds to requests for an upstream. The error contains no value.
func (f *File) SendsOf(upstream string, env func(string) (string, bool)) (http.Header, error) {
	var h http.Header
	for name, variable := range f.Sends[upstream] {
		v, _ := env(variable)
		if v = strings.TrimSpace(v); v == "" || !httpguts.ValidHeaderFieldValue(v) {
			return nil, fmt.Errorf("upstream %s: credentials: environment variable %s is empty, or not a valid header value", upstream, variable)
		}
		if h == nil {
			h = make(http.Header)
		}
		h[name] = []string{v}
	}
	return h, nil
}
