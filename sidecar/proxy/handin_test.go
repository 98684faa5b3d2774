package proxy

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A submitted request is routed, and only routes that deliver accept it.
func TestWhatIsHandedInHasARouteThatDelivers(t *testing.T) {
	u := up("http://127.0.0.1:1", brisk())
	u.Routes = []Route{{Path: "/later/", Deliver: DeliverAsked}, {Path: "/now/"}}
	p := newProxy(t, u)
	for target, want := range map[string]struct {
		status int
		says   string
	}{
		"/now/x":                   {400, "neither route /now/ of upstream up nor the operation of this request has deliver: true"},
		"/x":                       {404, "no route"},
		"/later/x":                 {503, "deliveries are not configured"}, // it is routed, but this test has no store
		"http://other.test/later/": {421, "other.test"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", target, strings.NewReader("x"))
		if r.URL.IsAbs() {
			r.URL.Scheme, r.URL.Host, r.RequestURI = "", "", r.URL.Path
		} else {
			r.Host = "localhost"
		}
		p.HandIn(w, r, "app")
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.says) {
			t.Errorf("%s: %d %s, want %d and %s", target, w.Code, w.Body, want.status, want.says)
		}
	}
}
