package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// machine starts an upstream at an address that responds with its name. All of 127.0.0.0/8 is this machine.
func machine(t *testing.T, address, name string) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// An upstream moves to another machine, one of its machines is down, or its name cannot be resolved for a while. weir
// resolves the name for each connection, and all possible calls succeed.
func TestAnUpstreamWhoseAddressesChange(t *testing.T) {
	const name = "api.weir.test"
	old := machine(t, "127.0.0.1:0", "old")
	_, port, _ := net.SplitHostPort(old.Listener.Addr().String())
	names.set(name, "127.0.0.1")
	s := start(t, fmt.Sprintf("http://%s:%s", name, port), "")
	get := func() (int, string) {
		resp, err := http.Get("http://" + s.address() + "/up/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	want := func(when, answer string) {
		t.Helper()
		for range 5 {
			if code, text := get(); code != http.StatusOK || text != answer {
				t.Errorf("%s: %d %s, want an answer of %s", when, code, text, answer)
			}
		}
	}
	want("at first", "old")
	moved := machine(t, "127.0.0.2:"+port, "moved")
	old.Close()
	names.set(name, "127.0.0.2")
	want("when it has moved", "moved")
	names.fail()
	want("while its name cannot be found, over connections that are there", "moved")
	moved.CloseClientConnections()
	if code, text := get(); code != http.StatusBadGateway || !strings.Contains(text, `"cause":"dns"`) {
		t.Errorf("without a connection: %d %s, want 502 because of dns", code, text)
	}
	names.set(name)
	if code, text := get(); code != http.StatusBadGateway || !strings.Contains(text, `"cause":"no such host"`) {
		t.Errorf("without an address: %d %s, want 502 because there is no such host", code, text)
	}
	names.set(name, "127.0.0.3", "127.0.0.2")
	want("when it is known again, with a machine that is dead", "moved")
}
