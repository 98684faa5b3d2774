package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A Location at the upstream leads back through the caller's route, whatever the status. An absolute URL stays absolute:
// Azure's pollers and Google's resumable uploads accept no other.
func TestLocationLeadsBackThroughTheRoute(t *testing.T) {
	said, status := "", 0
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(r.Header.Get("X-Name"), said)
		w.WriteHeader(status)
	}))
	defer far.Close()
	host := far.Listener.Addr().String()
	for _, c := range []struct {
		base  string // path of the upstream's URL
		route Route
		said  string
		want  string // "" means unchanged
	}{
		{"", Route{Path: "/a/", Strip: true}, "/v2/next", "/a/v2/next"},
		{"", Route{Path: "/a/", Strip: true}, "http://" + host + "/v2/next?b=c%20d#e", "http://localhost/a/v2/next?b=c%20d#e"},
		{"", Route{Path: "/a/", Strip: true}, "//" + host + "/x", "/a/x"},
		{"", Route{Path: "/a/", Strip: true}, "http://" + host, "http://localhost/a/"},
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
		{"", Route{Path: "/a/"}, "http://" + host + "/a/next", "http://localhost/a/next"},
		{"", Route{Path: "/a/"}, "/a/next", ""},
	} {
		for i, name := range append(pointers[:], "Upload-Location") {
			if status = []int{200, 201, 202, 307}[i%4]; name == "Upload-Location" && !strings.HasPrefix(c.said, "http") {
				continue
			}
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
			if got := w.Header().Get(name); w.Code != status || got != want {
				t.Errorf("upstream at %q, route %+v: %d, %s %q is passed on as %q, want %q", c.base, c.route, w.Code, name, c.said, got, want)
			}
		}
	}
}

// URLs in Link and Refresh lead back through the caller's route. An absolute URL in Link stays absolute, because
// clients do not resolve it.
func TestLinkAndRefreshLeadBackThroughTheRoute(t *testing.T) {
	name, said := "", ""
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header()[name] = []string{said} }))
	defer far.Close()
	host := far.Listener.Addr().String()
	for _, c := range []struct {
		name   string
		strip  bool
		header string // of the request
		said   string
		want   string // "" means unchanged
	}{
		{"Link", true, "", `<http://` + host + `/r?page=2>; rel="next", <http://` + host + `/r?page=9&a=<>; rel="last"`, `<http://localhost:8080/a/r?page=2>; rel="next", <http://localhost:8080/a/r?page=9&a=<>; rel="last"`},
		{"Link", false, "", `<http://` + host + `/a/r?page=2>; rel=next`, `<http://localhost:8080/a/r?page=2>; rel=next`},
		{"Link", true, "", `</r?page=2>;rel=next,<r?page=3>;rel=x`, `</a/r?page=2>;rel=next,<r?page=3>;rel=x`},
		{"Link", true, "https", `<http://` + host + `/r>; rel=next`, `<https://localhost:8080/a/r>; rel=next`},
		{"Link", true, "", `<https://elsewhere.example/r>; rel="next"; title="<http://` + host + `/r>, \"<"`, ""},
		{"Link", true, "", `<http://` + host + `/r`, ""},
		{"Link", true, "", `rel="next`, ""},
		{"Link", true, "", `>,<>; x="`, ""},
		{"Refresh", true, "", `5; url=http://` + host + `/next`, `5; url=/a/next`},
		{"Refresh", true, "", `0;URL='http://` + host + `/n;x'; y`, `0;URL='/a/n;x'; y`},
		{"Refresh", true, "", `3, "/next"`, `3, "/a/next"`},
		{"Refresh", true, "", `5; url = /next`, `5; url = /a/next`},
		{"Refresh", true, "", `5; url=https://elsewhere.example/`, ""},
		{"Refresh", true, "", `5; url="/open`, ""},
		{"Refresh", true, "", `5`, ""},
		{"Docker-Upload-Location", true, "", `http://` + host + `/v2/up?x=1`, `http://localhost:8080/a/v2/up?x=1`},
		{"X-Next-Url", true, "", `http://` + host + `/r?page=2`, `http://localhost:8080/a/r?page=2`},
		{"X-Next-Url", true, "", `/r?page=2`, ""},
		{"Upload-Location", true, "", `https://elsewhere.example/r`, ""},
		{"Access-Control-Allow-Origin", true, "", `http://` + host, ""},
		{"Set-Cookie", true, "", `s=1; Path=/v2; HttpOnly`, `s=1; Path=/a/v2; HttpOnly`},
		{"Set-Cookie", true, "", `s=1;path=/`, `s=1;path=/a`},
		{"Set-Cookie", true, "", `s=1; Path=/v2/`, `s=1; Path=/a/v2/`},
		{"Set-Cookie", false, "", `s=1; Path=/`, ""},
		{"Set-Cookie", true, "", `s=Path=/; Secure`, ""},
		{"Refresh", true, "", `5;`, ""},
		{"Refresh", true, "", `5; url`, ""},
	} {
		u := up(far.URL, brisk())
		u.Routes = []Route{{Path: "/a/", Strip: c.strip}}
		r := httptest.NewRequest("GET", "/a/one", nil)
		r.Host = "localhost:8080"
		if c.header != "" {
			r.Header.Set("X-Forwarded-Proto", c.header)
		}
		w := httptest.NewRecorder()
		name, said = c.name, c.said
		newProxy(t, u).ServeHTTP(w, r)
		want := c.want
		if want == "" {
			want = c.said
		}
		if got := w.Header().Get(name); w.Code != http.StatusOK || got != want {
			t.Errorf("strip %v: %d, %s %q is passed on as %q, want %q", c.strip, w.Code, name, c.said, got, want)
		}
	}
}

func TestHostOfALocationIsComparedAsItIsResolved(t *testing.T) {
	at := &trip{to: &target{Upstream: up("http://xn--bcher-kva.example", brisk())}, route: Route{Path: "/a/", Strip: true}}
	for said, want := range map[string]string{
		"http://bücher.example/x": "/a/x", "http://BÜCHER.example:80/x": "/a/x", "http://XN--BCHER-KVA.example./x": "/a/x", "http://b%C3%BCcher.example/x": "/a/x",
		"http://bücher.example:81/x": "http://bücher.example:81/x", "http://bucher.example/x": "http://bucher.example/x",
	} {
		if got := at.pointed(said); got != want {
			t.Errorf("%s is passed on as %s, want %s", said, got, want)
		}
	}
}
