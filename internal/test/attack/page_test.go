//go:build unix

package attack

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// keys are weir's credentials in these tests.
var keys = []string{
	"AWS_ACCESS_KEY_ID=AKWEIR", "AWS_SECRET_ACCESS_KEY=of weir", "AWS_EC2_METADATA_DISABLED=true",
	"GPT_KEY=sk-of-weir-and-nobody-else",
}

// armed returns a configuration with upstreams that get weir's credentials.
func armed(v *victim, head, more string) string {
	return fmt.Sprintf(`%s
upstreams:
  s3: {url: %q, aws: {service: s3, region: eu-west-1}}
  gpt: {url: %q, preset: openai, llm: {key_env: GPT_KEY}}
  own: {url: %q, llm: {family: openai, cascade: {tiers: [{upstream: gpt, model: gpt-4o}]}}}
%s`, head, v.url, v.url, v.url, more)
}

const local = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"

// A page of another site makes the visitor's browser send everything that needs no permission: a form, text, an image, a
// socket. Its name may resolve to this machine. None of these requests gets weir's credentials.
func TestAttackPageOfAnotherSite(t *testing.T) {
	v := newVictim(t)
	w := served.Start(t, armed(v, local+"origins: [\"https://app.example\"]\n", bystander(t)), keys...)
	at := w.Serve.Listen
	_, port, _ := net.SplitHostPort(at)
	chat := `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
	beside(t, at, func() {
		for _, target := range []string{"/s3/bucket/key", "/gpt/v1/chat/completions", "/own/v1/chat/completions"} {
			for _, c := range []struct {
				name, method, host string
				fields             []string
			}{
				{"a form of text", "POST", at, []string{"Content-Type: text/plain", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}},
				{"the same, in an old browser", "POST", at, []string{"Content-Type: text/plain", "Origin: https://evil.example"}},
				{"a page without an origin", "POST", at, []string{"Content-Type: text/plain", "Origin: null"}},
				{"an image", "GET", at, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}},
				{"a link", "GET", at, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}},
				{"a question beforehand", "OPTIONS", at, []string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}},
				{"a socket", "GET", at, []string{"Origin: https://evil.example", "Upgrade: websocket", "Sec-WebSocket-Key: x"}},
				{"a page of another port", "POST", at, []string{"Origin: http://127.0.0.1:3000", "Sec-Fetch-Site: same-site"}},
				{"a name that was made to lead here", "POST", "evil.example:" + port, []string{"Origin: http://evil.example:" + port, "Sec-Fetch-Site: same-origin"}},
				{"the same, by way of a proxy that changes Host", "POST", at, []string{"Origin: http://evil.example:" + port, "Sec-Fetch-Site: same-origin"}},
				{"the same, a reading", "GET", "evil.example:" + port, []string{"Sec-Fetch-Site: same-origin"}},
			} {
				resp := say(t, at, request(c.method, target, c.host, chat, c.fields...))
				if got := v.take(); resp.StatusCode != 403 && resp.StatusCode != 421 || len(got) > 0 {
					t.Errorf("%s to %s: answered %s, and the upstream got %+v", c.name, target, resp.Status, got)
				}
			}
		}
		for _, method := range []string{"TRACE", "TRACK", "post", "Get"} { // methods that return the request, or that servers interpret differently
			for _, target := range []string{"/s3/bucket/key", "/gpt/v1/models", "/own/v1/models"} {
				if resp := say(t, at, request(method, target, at, "")); resp.StatusCode != 400 && resp.StatusCode != 405 || len(v.take()) > 0 {
					t.Errorf("%s of %s: answered %s", method, target, resp.Status)
				}
			}
		}
		over2 := h2c()
		defer over2.CloseIdleConnections()
		r, _ := http.NewRequest("POST", "http://"+at+"/s3/bucket/key", strings.NewReader("x"))
		r.Header.Set("Origin", "https://evil.example")
		if resp, err := over2.Do(r); err != nil || resp.StatusCode != 403 || len(v.take()) > 0 {
			t.Errorf("over HTTP/2: %v, %v", resp, err)
		}
	})

	// Legitimate requests pass, with weir's credentials instead of the caller's.
	for name, fields := range map[string][]string{
		"a program": nil, "a page that is listed": {"Origin: https://app.example", "Sec-Fetch-Site: cross-site"},
	} {
		for target, want := range map[string]string{"/s3/bucket/key": "AKWEIR", "/gpt/v1/chat/completions": "Bearer sk-of-weir"} {
			say(t, at, request("POST", target, at, chat, fields...))
			if got := v.take(); len(got) == 0 || !strings.Contains(got[0].header.Get("Authorization"), want) {
				t.Errorf("%s to %s: the upstream got %+v", name, target, got)
			}
		}
	}
	if m := text(get(t, "http://"+w.Serve.Admin+"/metrics")); !strings.Contains(m, `weir_listener_refused_total{listener="listen",reason="origin"} 28`) {
		t.Errorf("the metrics do not tell: %s", grep(m, "turned_away"))
	}
}

// On an address that other machines reach, a weir that adds credentials starts only if it can identify callers. It then
// requires a token, which it does not forward.
func TestAttackFromElsewhere(t *testing.T) {
	v := newVictim(t)
	token := "a-token-of-more-than-sixteen"
	env := append([]string{"APP_TOKEN=" + token, "OPS_TOKEN=of-the-operators-and-nobody"}, keys...)
	file := served.Launch(t, armed(v, "listen: 0.0.0.0:0\nadmin: off\n", ""), keys...)
	if err := file.Exited(); err == nil || !strings.Contains(file.Log(), "anyone who reaches it could call") {
		t.Errorf("it began for everyone: %v, %s", err, file.Log())
	}
	w := served.Start(t, armed(v, `
listen: 0.0.0.0:0
admin: 0.0.0.0:0
admin_open: true
admin_tokens: {ops: {env: OPS_TOKEN}}
tokens: {app: {env: APP_TOKEN}}
`, bystander(t)), env...)
	_, port, _ := net.SplitHostPort(w.Serve.Listen)
	_, adminPort, _ := net.SplitHostPort(w.Serve.Admin)
	for _, ip := range []string{"127.0.0.1", outside()} {
		at, admin := net.JoinHostPort(ip, port), net.JoinHostPort(ip, adminPort)
		beside(t, at, func() {
			for _, target := range []string{"/s3/bucket/key", "/gpt/v1/chat/completions", "/calm/x", "/none"} {
				for _, fields := range [][]string{nil, {"Authorization: Bearer " + token + "x"}, {"X-Api-Key: sk-mine"}, {"X-Weir-Token: "}} {
					if resp := say(t, at, request("POST", target, at, "{}", fields...)); resp.StatusCode != 401 || len(v.take()) > 0 {
						t.Errorf("%s to %s of %s: answered %s", fields, target, at, resp.Status)
					}
				}
			}
			for path, want := range map[string]int{"/metrics": 200, "/livez": 200, "/readyz": 200, "/v1/status": 401, "/v1/breaker": 401, "/nothing": 401} {
				if resp := say(t, admin, request("GET", path, admin, "")); resp.StatusCode != want {
					t.Errorf("%s of %s: answered %s, want %d", path, admin, resp.Status, want)
				}
			}
			order := `{"upstream":"s3","do":"open"}`
			if resp := say(t, admin, request("POST", "/v1/breaker", admin, order, "Authorization: Bearer "+token)); resp.StatusCode != 401 {
				t.Errorf("a caller's token works the breaker: %s", resp.Status)
			}
		}, "X-Weir-Token: "+token)
		say(t, at, request("POST", "/gpt/v1/chat/completions", at, `{"model":"gpt-4o","messages":[]}`, "Authorization: Bearer "+token))
		if got := v.take(); len(got) == 0 || got[0].header.Get("Authorization") != "Bearer sk-of-weir-and-nobody-else" || strings.Contains(fmt.Sprint(got), token) {
			t.Errorf("the upstream got %+v", got)
		}
	}
	out, code := served.Say(t, nil, "status", "-admin", "127.0.0.1:"+adminPort)
	if code != 1 || !strings.Contains(out, "WEIR_ADMIN_TOKEN") {
		t.Errorf("status without a token: %d, %s", code, out)
	}
	if out, code := served.Say(t, []string{"WEIR_ADMIN_TOKEN=of-the-operators-and-nobody"}, "status", "-admin", "127.0.0.1:"+adminPort); code != 0 || !strings.Contains(out, "gpt") {
		t.Errorf("status with the token: %d, %s", code, out)
	}
}

// outside returns an address of this machine that is not loopback, or else loopback.
func outside() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

func get(t testing.TB, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// grep returns the lines that contain a word.
func grep(s, word string) string {
	var all []string
	for line := range strings.Lines(s) {
		if strings.Contains(line, word) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "")
}
