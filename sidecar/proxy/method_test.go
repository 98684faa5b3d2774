package proxy

import (
	"strings"
	"testing"
)

// An upstream that implements TRACE would show weir's own key to a caller.
func TestTraceShowsNoCredentials(t *testing.T) {
	w := newWire(t)
	keyed, plain := up(w.url, brisk()), up(w.url, brisk())
	keyed.Name, keyed.Routes, keyed.Credentials = "keyed", []Route{{Path: "/keyed/"}}, true
	address := listen(t, newProxy(t, keyed, plain))
	for _, method := range []string{"TRACE", "TRACK"} {
		if resp := say(t, address, strings.Replace(get("/keyed/x"), "GET", method, 1)); resp.StatusCode != 405 {
			t.Errorf("%s where weir adds its key: answered %s", method, resp.Status)
		}
		if resp := say(t, address, strings.Replace(get("/x"), "GET", method, 1)); resp.StatusCode != 200 {
			t.Errorf("%s where weir adds nothing: answered %s", method, resp.Status)
		}
	}
	if n := len(w.heads()); n != 2 {
		t.Errorf("%d reached the upstream, want 2", n)
	}
}

func TestMethodsInSmallLettersAreRefused(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for method, want := range map[string]int{"post": 400, "Get": 400, "deletE": 400, "patch": 400, "PATCH": 200, "PROPFIND": 200, "m-search": 200} {
		if resp := say(t, address, strings.Replace(get("/x"), "GET", method, 1)); resp.StatusCode != want {
			t.Errorf("%s: answered %s, want %d", method, resp.Status, want)
		}
	}
}

// A caller cannot switch to another HTTP version with the upstream, because weir would not see the requests on that
// connection.
func TestAnotherHTTPIsNotAskedFor(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for _, wish := range []string{"h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.3"} {
		say(t, address, strings.Replace(get("/x", "Upgrade: "+wish, "HTTP2-Settings: AAMAAABk"), "Connection: close", "Connection: close, Upgrade, HTTP2-Settings", 1))
		heads := w.heads()
		if head := strings.ToLower(heads[len(heads)-1]); strings.Contains(head, "upgrade") || strings.Contains(head, "http2-settings") {
			t.Errorf("%s: the upstream got %q", wish, head)
		}
	}
}
