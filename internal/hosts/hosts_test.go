package hosts

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestName(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "LOCALHOST:1": "localhost", "localhost.": "localhost", "a.b.:80": "a.b", "[::1]:80": "::1", "[::1]": "::1", "::1": "::1",
		"127.0.0.1:99": "127.0.0.1", "Weir.Internal": "weir.internal",
	} {
		if got := Name(host); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

func TestOurs(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8081} }
	loopback := tcp("127.0.0.1")
	for _, c := range []struct {
		host  string
		local net.Addr
		want  bool
	}{
		{"localhost", loopback, true},
		{"LOCALHOST:1", loopback, true},
		{"a.localhost", loopback, true},
		{"localhost.", loopback, true},
		{"127.0.0.1:99", loopback, true},
		{"127.9.9.9", loopback, true},
		{"[::1]", tcp("::1"), true},
		{"[::1]:80", tcp("::1"), true},
		{"10.0.0.1", loopback, true},
		{"ours.example", loopback, true},
		{"OURS.EXAMPLE.:80", loopback, true},

		{"evil.example", loopback, false},
		{"evil.example:8081", loopback, false},
		{"evil.example", tcp("::1"), false},
		{"evil.example", tcp("::ffff:127.0.0.1"), false},
		{"evil.example", nil, false},
		{"localhost.evil.example", loopback, false},
		{"127.0.0.1.evil.example", loopback, false},
		{"notlocalhost", loopback, false},
		{"x.ours.example", loopback, false},
		{"", loopback, false},

		{"weir.internal", tcp("10.0.0.7"), true},
		{"weir.internal", tcp("fd00::1"), true},
		{"weir.internal", &net.UnixAddr{Name: "weir.sock", Net: "unix"}, true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		if c.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		}
		if got := Ours(r, []string{"ours.example"}); got != c.want {
			t.Errorf("%s on %v: got %v", c.host, c.local, got)
		}
	}
}
