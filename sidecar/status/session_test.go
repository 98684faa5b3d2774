package status

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/auth"
)

// A window is a browser that uses an admin listener from another machine.
type window struct {
	http.Handler
	from   string
	cookie *http.Cookie
}

func (b *window) send(method, path, form string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	r.Host, r.RemoteAddr = "weir.test:8081", b.from+":5000"
	r.Header.Set("Accept", "text/html,*/*")
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8081})))
	return w
}

// login sends a token, and keeps the cookie.
func (b *window) login(token string) *httptest.ResponseRecorder {
	w := b.send("POST", "/login", url.Values{"token": {token}}.Encode(), "Origin", "http://weir.test:8081")
	for _, c := range w.Result().Cookies() {
		b.cookie = c
	}
	return w
}

const opsToken, otherToken = "the-secret-of-the-operators", "the-secret-of-the-others"

// office returns an admin listener for other machines, and its tokens.
func office(t *testing.T) (*window, *auth.Auth) {
	a := &auth.Auth{Tokens: []auth.Token{{Name: "ops.eu", SHA256: auth.Hash(opsToken)}, {Name: "other", SHA256: auth.Hash(otherToken)}}}
	p := page(t, upstream(t, "s3", weir.Policy{}))
	p.Auth = func() *auth.Auth { return a }
	p.SignIn = func(w http.ResponseWriter, code int, wrong string) {
		w.WriteHeader(code)
		fmt.Fprint(w, "sign in: ", wrong)
	}
	p.Board = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-r.Context().Done()
		}
		name, _, err := p.known(r)
		fmt.Fprint(w, "page of ", name, err)
	})
	return &window{Handler: p.Handler(), from: "10.0.0.9"}, a
}

// A browser that has sent a token is known by its cookie, from its address and for an hour, until the token is
// removed.
func TestABrowserSignsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := office(t)
		if w := b.send("GET", "/", ""); w.Code != 401 || !strings.HasPrefix(w.Body.String(), "sign in") {
			t.Fatalf("nobody: %d %s", w.Code, w.Body)
		}
		if w := b.send("GET", "/v1/status", ""); w.Code != 401 || !strings.Contains(w.Body.String(), "UNAUTHORIZED") {
			t.Errorf("a program: %d %s", w.Code, w.Body)
		}
		if w := b.login("wrong"); w.Code != 401 || b.cookie != nil {
			t.Errorf("a wrong token: %d %v", w.Code, b.cookie)
		}
		if w := b.login(opsToken); w.Code != 303 || b.cookie == nil || !b.cookie.HttpOnly || b.cookie.SameSite != http.SameSiteStrictMode || b.cookie.MaxAge > 3600 {
			t.Fatalf("the token: %d %v", w.Code, b.cookie)
		}
		if strings.Contains(b.cookie.Value, opsToken) {
			t.Error("the cookie holds the token")
		}
		if w := b.send("GET", "/", ""); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "page of ops.eu") {
			t.Errorf("with the cookie: %d %s", w.Code, w.Body)
		}
		good := *b.cookie
		parts := strings.SplitN(good.Value, ".", 2)
		for what, value := range map[string]string{
			"a later end": fmt.Sprint(time.Now().Add(9*time.Hour).Unix(), ".", parts[1]), "another name": strings.Replace(good.Value, "ops.eu", "other", 1),
			"no signature": parts[0] + ".ops.eu", "none": "", "a dot": ".", "nonsense": "9.9.9",
		} {
			b.cookie = &http.Cookie{Name: good.Name, Value: value}
			if w := b.send("GET", "/", ""); w.Code != 401 {
				t.Errorf("%s: %d", what, w.Code)
			}
		}
		b.cookie = &good
		b.from = "10.0.0.10"
		if w := b.send("GET", "/", ""); w.Code != 401 {
			t.Errorf("from another address: %d", w.Code)
		}
		b.from = "10.0.0.9"
		if w := b.send("POST", "/v1/breaker", `{"upstream":"s3","do":"open"}`, "Origin", "http://evil.example"); w.Code != 403 {
			t.Errorf("for a page of another site: %d", w.Code)
		}
		a.Tokens[0].SHA256 = auth.Hash("the-secret-after-a-change")
		if w := b.send("GET", "/", ""); w.Code != 401 {
			t.Errorf("when the token is another one: %d", w.Code)
		}
		a.Tokens[0].SHA256 = auth.Hash(opsToken)
		time.Sleep(59 * time.Minute)
		if w := b.send("GET", "/", ""); w.Code != 200 {
			t.Errorf("after 59 minutes: %d", w.Code)
		}
		time.Sleep(time.Minute)
		if w := b.send("GET", "/", ""); w.Code != 401 {
			t.Errorf("after an hour: %d", w.Code)
		}
		b.login(opsToken)
		if w := b.send("POST", "/logout", "x=y"); w.Code != 303 || w.Result().Cookies()[0].MaxAge >= 0 {
			t.Errorf("sign out: %d %v", w.Code, w.Result().Cookies())
		}
	})
}

// A form of another site, a GET and a foreign host name start no session.
func TestOnlyOurFormSignsIn(t *testing.T) {
	b, _ := office(t)
	form := url.Values{"token": {opsToken}}.Encode()
	for what, w := range map[string]*httptest.ResponseRecorder{
		"another site": b.send("POST", "/login", form, "Origin", "http://evil.example"),
		"no site":      b.send("POST", "/login", form, "Origin", "null"),
		"cross-site":   b.send("POST", "/login", form, "Origin", "http://weir.test:8081", "Sec-Fetch-Site", "cross-site"),
		"a GET":        b.send("GET", "/login?"+form, ""),
	} {
		if w.Code != 403 && w.Code != 401 || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: %d %v", what, w.Code, w.Result().Cookies())
		}
	}
	r := httptest.NewRequest("POST", "/login", strings.NewReader(form))
	r.Host = "evil.example"
	w := httptest.NewRecorder()
	if b.ServeHTTP(w, r); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", w.Code)
	}
}

// Wrong tokens are limited per address and in total. Right tokens are not, and other addresses are not affected.
func TestWrongTokensAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := office(t)
		for range 100 {
			if w := b.login(opsToken); w.Code != 303 {
				t.Fatalf("a right one: %d", w.Code)
			}
		}
		for i := range triesAtOnce {
			if w := b.login("wrong"); w.Code != 401 {
				t.Fatalf("wrong token %d: %d", i+1, w.Code)
			}
		}
		if w := b.login("wrong"); w.Code != 429 || w.Header().Get("Retry-After") != "11" {
			t.Errorf("one wrong token too many: %d, again in %s", w.Code, w.Header().Get("Retry-After"))
		}
		if w := b.send("GET", "/v1/status", "", "Authorization", "Bearer wrong"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("a wrong token of a program: %d, again in %s", w.Code, w.Header().Get("Retry-After"))
		}
		if w := b.login(opsToken); w.Code != 303 {
			t.Errorf("a right one after too many wrong ones: %d, want the operator let in", w.Code)
		}
		b.cookie = nil
		if w := b.send("GET", "/v1/status", "", "Authorization", "Bearer "+opsToken); w.Code != 200 {
			t.Errorf("a right one of a program: %d", w.Code)
		}
		b.from = "10.0.0.10"
		if w := b.login(opsToken); w.Code != 303 {
			t.Errorf("from another address: %d", w.Code)
		}
		wrong := 0
		for i := range 3000 {
			b.from = fmt.Sprintf("10.1.%d.%d", i/250, i%250)
			if b.login("wrong").Code == 401 {
				wrong++
			}
		}
		if wrong > 100*triesAtOnce {
			t.Errorf("%d wrong tokens were looked at", wrong)
		}
		time.Sleep(time.Minute)
		b.from = "10.0.0.9"
		if w := b.login(opsToken); w.Code != 303 {
			t.Errorf("a minute later: %d", w.Code)
		}
	})
}

// A response in progress for a browser ends with its session.
func TestALivePageEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := office(t)
		b.login(opsToken)
		begin := time.Now()
		b.send("GET", "/wait", "")
		if lasted := time.Since(begin); lasted != time.Hour {
			t.Errorf("it lasted %v", lasted)
		}
	})
}

func TestLogoutEndsTheSessionWhereverItsCookieIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := office(t)
		b.login(opsToken)
		stolen := *b.cookie
		other := &window{Handler: b.Handler, from: b.from}
		other.login(opsToken)
		if w := b.send("POST", "/logout", "x=y", "Origin", "http://weir.test:8081"); w.Code != 303 {
			t.Fatal(w.Code)
		}
		thief := &window{Handler: b.Handler, from: b.from, cookie: &stolen}
		if w := thief.send("GET", "/", ""); w.Code != 401 {
			t.Errorf("the cookie of a session that was ended: %d", w.Code)
		}
		if w := other.send("GET", "/", ""); w.Code != 200 {
			t.Errorf("another session of the same second: %d", w.Code)
		}
		if b.login(opsToken); b.send("GET", "/", "").Code != 200 {
			t.Error("it cannot sign in again")
		}
	})
}
