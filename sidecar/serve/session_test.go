package serve

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A cookie is of no use after its session was logged out: on no path of any listener, before and after a reload. Before, it is
// valid on the admin listener only.
func TestCookieOfALoggedOutSessionIsRefusedEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer serveInside(t, n, "admin: 127.0.0.1:81\ntokens: {ops: {env: TOKEN_A, admin: true}, b: {env: TOKEN_B}}\nupstreams: {up: {url: \""+up+"\"}}\n")()
		c := &http.Client{Transport: n.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		send := func(method, target, body string, header ...string) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+target, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if body != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp
		}
		token, _ := insideEnv("TOKEN_A")
		const admin = "127.0.0.1:81"
		login := func() string {
			resp := send("POST", admin+"/login", url.Values{"token": {token}}.Encode(), "Origin", "http://"+admin)
			if len(resp.Cookies()) != 1 {
				t.Fatalf("login: %s", resp.Status)
			}
			return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
		}
		copied, other := login(), login()
		for target, want := range map[string]int{admin + "/": 200, admin + "/v1/status": 200, "localhost:80/up/": 401} {
			if got := send("GET", target, "", "Cookie", copied); got.StatusCode != want && (want == 200 || got.StatusCode < 400) {
				t.Errorf("%s before the logout: %s, want %d", target, got.Status, want)
			}
		}
		if got := send("POST", admin+"/logout", "x=y", "Origin", "http://"+admin, "Cookie", copied); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("logout: %s", got.Status)
		}
		for _, when := range []string{"after the logout", "after a reload", "after another reload"} {
			for target, method := range map[string]string{
				admin + "/": "GET", admin + "/v1/status": "GET", admin + "/v1/board": "GET", admin + "/v1/breaker": "POST", admin + "/v1/reload": "POST", admin + "/v1/pause": "POST",
				"localhost:80/up/": "GET",
			} {
				for _, cookie := range []string{copied, copied + "; " + copied, "a=b; " + copied} {
					if got := send(method, target, "", "Origin", "http://"+strings.SplitN(target, "/", 2)[0], "Cookie", cookie); got.StatusCode != 401 {
						t.Errorf("%s, %s %s: %s, want 401", when, method, target, got.Status)
					}
				}
			}
			if got := send("GET", admin+"/", "", "Cookie", other); got.StatusCode != 200 {
				t.Errorf("%s, another session: %s", when, got.Status)
			}
			if got := send("POST", admin+"/v1/reload", "", "Authorization", "Bearer "+token); got.StatusCode != 200 {
				t.Fatalf("reload: %s", got.Status)
			}
		}
	})
}
