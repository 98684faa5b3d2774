package proxy

import (
	"net/http"
	"testing"
)

// What an upstream is to be told of where requests come from, it is told, of all fields that say so.
func TestForwardedFieldsThatAreToPassDo(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Pass = []string{"X-Forwarded-For", "Forwarded"}
	say(t, listen(t, newProxy(t, u)), get("/", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "X-Forwarded-Host: a", "X-Real-Ip: 10.0.0.2"))
	head := w.heads()[0]
	for name, want := range map[string]int{"X-Forwarded-For": 1, "Forwarded": 1, "X-Forwarded-Host": 0, "X-Real-Ip": 0} {
		if got := lines(head, name); len(got) != want {
			t.Errorf("%s: %q, want %d", name, got, want)
		}
	}
}

// An answer with which an upstream goes over to another protocol, unasked, is none.
func TestNobodyGoesOverToAnotherProtocolUnasked(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	if resp := say(t, listen(t, newProxy(t, up(w.url, brisk()))), get("/")); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("got %s", resp.Status)
	}
}
