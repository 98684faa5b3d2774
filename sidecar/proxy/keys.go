package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
)

// A key is a scope, and how its value is read from a request.
type key struct {
	scope string
	read  func(*http.Request) string
}

// ambiguous returns the name of a parameter by which weir tells requests apart and that a server could read in two
// ways: it stands in the query twice, in any letter case, or the query cannot be read. It is "" if there is none.
func (t *target) ambiguous(r *http.Request) string {
	if r.URL.RawQuery == "" || len(t.inQuery) == 0 {
		return ""
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	for _, name := range t.inQuery {
		n := 0
		for is, values := range query {
			if strings.EqualFold(is, name) {
				n += len(values)
			}
		}
		if n > 1 || err != nil && name != apiKey {
			return name
		}
	}
	return ""
}

// apiKey is the parameter in which Google's clients send their key.
const apiKey = "key"

// inQueryOf are the parameters by which an upstream's requests are told apart.
func inQueryOf(u *Upstream) (names []string) {
	for _, s := range u.Keys {
		if s.Kind == httpx.FromQuery {
			names = append(names, s.Name)
		}
	}
	if u.Priority != nil && u.Priority.Kind == httpx.FromQuery {
		names = append(names, u.Priority.Name)
	}
	if u.Dialect != nil && !slices.Contains(names, apiKey) {
		names = append(names, apiKey)
	}
	return names
}

func keysOf(sources map[string]httpx.Source, v *veil.Veil) []key {
	var keys []key
	for scope, s := range sources {
		keys = append(keys, key{scope, s.Veiled(v, scope)})
	}
	return keys
}
