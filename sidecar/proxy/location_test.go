package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// An answer that points to a place of its upstream leads back through the route that it came by.
func TestLocationLeadsBackThroughTheRoute(t *testing.T) {
	said := ""
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(r.Header.Get("X-Name"), said)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer far.Close()
	host := far.Listener.Addr().String()
	for _, c := range []struct {
		base  string // path of the upstream's URL
		route Route
		said  string
		want  string // "" means as it was said
	}{
		{"", Route{Path: "/a/", Strip: true}, "/v2/next", "/a/v2/next"},
		{"", Route{Path: "/a/", Strip: true}, "http://" + host + "/v2/next?b=c%20d#e", "/a/v2/next?b=c%20d#e"},
		{"", Route{Path: "/a/", Strip: true}, "//" + host + "/x", "/a/x"},
		{"", Route{Path: "/a/", Strip: true}, "http://" + host, "/a/"},
		{"", Route{Path: "/a/b/", Strip: true}, "/x%2Fy", "/a/b/x%2Fy"},
		{"", Route{Path: "/a/", Strip: true}, "next?x=1", ""},
		{"", Route{Path: "/a/", Strip: true}, "../up", ""},
		{"", Route{Path: "/a/", Strip: true}, "https://" + host + "/x", ""},
		{"", Route{Path: "/a/", Strip: true}, "https://elsewhere.example/x", ""},
		{"", Route{Path: "/a/", Strip: true}, "http://user@" + host + "/x", ""},
		{"", Route{Path: "/a/", Strip: true}, "mailto:a@b", ""},
		{"", Route{Path: "/a/", Strip: true}, "", ""},
		{"/v1", Route{Path: "/a/", Strip: true}, "/v1/next", "/a/next"},
		{"/v1", Route{Path: "/a/", Strip: true}, "/v2/next", ""},
		{"/v1", Route{Path: "/a/"}, "/v1/a/next", "/a/next"},
		{"", Route{Path: "/a/"}, "http://" + host + "/a/next", "/a/next"},
		{"", Route{Path: "/a/"}, "/a/next", ""},
	} {
		for _, name := range pointers {
			u := up(far.URL+c.base, brisk())
			u.Routes = []Route{c.route}
			r := httptest.NewRequest("GET", c.route.Path+"one", nil)
			r.Host = "localhost"
			r.Header.Set("X-Name", name)
			w := httptest.NewRecorder()
			said = c.said
			newProxy(t, u).ServeHTTP(w, r)
			want := c.want
			if want == "" {
				want = c.said
			}
			if got := w.Header().Get(name); w.Code != http.StatusTemporaryRedirect || got != want {
				t.Errorf("upstream at %q, route %+v: %d, %s %q is passed on as %q, want %q", c.base, c.route, w.Code, name, c.said, got, want)
			}
		}
	}
}
