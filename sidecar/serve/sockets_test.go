package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A refused connection is reported like a refused call: its response, the log and the record contain its ID.
func TestAConnectionWithoutAPlaceIsToldOf(t *testing.T) {
	stop := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer up.Close()
	defer close(stop)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up:\n    url: %s\n    routes: [{path: /up/, websocket: true}]\n    keys: {user: \"header:X-User\"}\n    websocket: {connections_by: {user: 1}}\n", up.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	ask := func() (*http.Response, error) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address()+"/up/", nil)
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}, "X-User": {"zoe"}}
		return http.DefaultClient.Do(r)
	}
	for range 2 { // the first one occupies the slot until it ends
		go func() {
			if resp, err := ask(); err == nil {
				resp.Body.Close()
			}
		}()
	}
	line := s.log.waitFor(t, "refused")
	if line["reason"] != "concurrency_limited" || line["operation"] != "connect" || line["key"] != "zoe" {
		t.Errorf("the log has %v", line)
	}
	e := s.page.Explain(t.Context(), fmt.Sprint(line["id"]), time.Time{})
	told := e.Text()
	for _, want := range []string{"up connect: refused by weir: concurrency_limited", "user=zoe", "1 of 1 in flight", "websocket (" + file + ":", "raise connections_by"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in\n%s", want, told)
		}
	}
}
