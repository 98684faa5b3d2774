package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// A limit is tried beside the one that binds: calls succeed, and status, page and metrics state what it would have done. A
// reload makes it binding.
func TestLimitIsTriedBeforeItBinds(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put := func(shadow string) {
		t.Helper()
		yaml := fmt.Sprintf("{listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", upstreams: {up: {url: %q, max_wait: off, keys: {user: \"header:X-User\"}, limits: {calls: {rate: 1000/s, shadow: {rate: 1/h, burst: 2}}, user: {rate: 1/h, burst: 3, scope: user%s}}}}}", up.URL, shadow)
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(", shadow: true")
	s := startWith(t, file, noEnv)
	call := func() int {
		t.Helper()
		r, _ := http.NewRequest("GET", "http://"+s.address()+"/up/x", nil)
		r.Header.Set("X-User", "ann")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for range 10 {
		if code := call(); code != http.StatusOK {
			t.Fatalf("a call got %d", code)
		}
	}
	var is status.Report
	eventually(t, "all calls are tried", func() bool {
		resp, err := http.Get("http://" + s.admin.Addr().String() + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		is = status.Report{}
		if err := json.NewDecoder(resp.Body).Decode(&is); err != nil {
			t.Fatal(err)
		}
		n := uint64(0)
		for _, trial := range is.Upstreams[0].Shadow {
			n += trial.Refused
		}
		return n == 8 // two of ten calls are allowed by both
	})
	var text bytes.Buffer
	if err := status.Print(&text, is); err != nil || !strings.Contains(text.String(), "WOULD BE REFUSED") {
		t.Errorf("%v: %s", err, text.String())
	}
	if !s.adminHas(t, "/metrics", `weir_shadow_decisions_total{decision="allowed",limit="calls",upstream="up"} 2`) {
		t.Error("the metrics do not count the calls")
	}
	put("")
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	for range 3 { // the limit starts full
		call()
	}
	if code := call(); code != http.StatusTooManyRequests {
		t.Errorf("a call got %d after the limit binds", code)
	}
}
