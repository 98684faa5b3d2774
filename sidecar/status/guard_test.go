package status

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/auth"
)

// Senders from other machines can read metrics and health. Everything else requires authentication. On loopback, no
// token is required if none is configured.
func TestWhoMayAskTheAdminListener(t *testing.T) {
	const secret = "the-secret-of-the-operators"
	known := &auth.Auth{Tokens: []auth.Token{{Name: "ops", SHA256: auth.Hash(secret)}}}
	here, elsewhere := net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 7)
	for _, c := range []struct {
		name   string
		auth   *auth.Auth
		all    bool
		at     net.IP
		header string
		health int // status of public paths
		rest   int
	}{
		{"loopback, no tokens", &auth.Auth{}, false, here, "", 200, 200},
		{"loopback, no tokens, all", &auth.Auth{}, true, here, "", 200, 200},
		{"elsewhere, no tokens", &auth.Auth{}, false, elsewhere, "", 200, 401},
		{"elsewhere, no tokens but one is shown", &auth.Auth{}, false, elsewhere, "Bearer " + secret, 200, 401},
		{"elsewhere, no tokens, all", &auth.Auth{}, true, elsewhere, "", 401, 401},
		{"loopback, tokens, none shown", known, false, here, "", 200, 401},
		{"loopback, the token", known, false, here, "Bearer " + secret, 200, 200},
		{"elsewhere, the token", known, false, elsewhere, "Bearer " + secret, 200, 200},
		{"elsewhere, another token", known, false, elsewhere, "Bearer " + secret + "x", 200, 401},
		{"elsewhere, none, all", known, true, elsewhere, "", 401, 401},
		{"elsewhere, the token, all", known, true, elsewhere, "Bearer " + secret, 200, 200},
	} {
		p := page(t, upstream(t, "s3", weir.Policy{}))
		refused := 0
		p.Reload = func(context.Context, string) error { return nil }
		p.Auth, p.AuthAll, p.Refused = func() *auth.Auth { return c.auth }, c.all, func(string) { refused++ }
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: c.at, Port: 8081})
			p.Handler().ServeHTTP(w, r.WithContext(at))
		})
		wrong := 0
		for target, want := range map[string]int{
			"GET /livez": c.health, "GET /readyz": c.health, "GET /healthz": c.health, "GET /metrics": c.health,
			"GET /v1/status": c.rest, "POST /v1/breaker": c.rest, "POST /v1/reload": c.rest, "GET //metrics": c.rest, "GET /metrics/": c.rest, "GET /v1/breaker/../../metrics": c.rest,
		} {
			method, path, _ := cut(target)
			got := ask(h, method, path, `{"upstream":"s3","do":"reset"}`, "Authorization: "+c.header).Code
			if want == 200 && (got == 301 || got == 307 || got == 404) { // it was admitted, and the page does not exist
				got = 200
			}
			if got != want {
				t.Errorf("%s: %s: got %d, want %d", c.name, target, got, want)
			}
			if got == 401 {
				wrong++
			}
		}
		if refused != wrong {
			t.Errorf("%s: %d refusals were told, want %d", c.name, refused, wrong)
		}
	}
}

func cut(target string) (method, path string, ok bool) {
	for i := range target {
		if target[i] == ' ' {
			return target[:i], target[i+1:], true
		}
	}
	return "", "", false
}
