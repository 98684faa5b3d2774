package proxy

import (
	"net/http"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
)

// A key is a scope, and how its value is read from a request.
type key struct {
	scope string
	read  func(*http.Request) string
}

func keysOf(sources map[string]httpx.Source, v *veil.Veil) []key {
	var keys []key
	for scope, s := range sources {
		keys = append(keys, key{scope, s.Veiled(v, scope)})
	}
	return keys
}
