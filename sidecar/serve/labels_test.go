package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Metrics contain the keys of limits that ask for it, hashed if the file names a secret. A reload that adds such a
// limit together with the secret exports no keys, because the secret needs a restart.
func TestMetricsShowKeysThatAreLabels(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	const labels, hidden = ", labels: true", "hash_env: HASH"
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put := func(top, more string) {
		t.Helper()
		yaml := fmt.Sprintf("{listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", %s upstreams: {up: {url: %q, keys: {user: \"header:X-User\"}, limits: {calls: {rate: 10/h, burst: 10, scope: user%s}}}}}", top, up.URL, more)
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return "CORRECTHORSEBATTERYSTAPLECORRECTHORSE", name == "HASH" }
	shown := func(s *sidecar) string {
		t.Helper()
		r, _ := http.NewRequest("GET", "http://"+s.address()+"/up/x", nil)
		r.Header.Set("X-User", "ann")
		if resp, err := http.DefaultClient.Do(r); err != nil || resp.StatusCode != http.StatusOK || resp.Body.Close() != nil {
			t.Fatal(resp, err)
		}
		resp, err := http.Get("http://" + s.admin.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		if err != nil || strings.Contains(string(page), "ann") {
			t.Errorf("metrics name a user: %s, %v", page, err)
		}
		var keys []string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "weir_limit_key_") {
				keys = append(keys, strings.TrimSpace(line))
			}
		}
		return strings.Join(keys, "\n")
	}
	const series = `weir_limit_key_units_remaining{key="%[1]s",limit="calls",upstream="up"} 9
weir_limit_key_used_ratio{key="%[1]s",limit="calls",upstream="up"} 0.1`

	put(hidden+",", labels)
	s := startWith(t, file, env)
	if got, want := shown(s), fmt.Sprintf(series, s.veil.Key("user", "ann")); got != want || !strings.Contains(got, `"hmac:`) {
		t.Errorf("hidden: got\n%s\nwant\n%s", got, want)
	}

	put("", "")
	s = startWith(t, file, env)
	if got := shown(s); got != "" {
		t.Errorf("keys that are no labels: got\n%s", got)
	}
	put(hidden+",", labels)
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	if got, want := shown(s), strings.NewReplacer(" 9", " 8", " 0.1", " 0.2").Replace(fmt.Sprintf(series, "(other)")); got != want {
		t.Errorf("hidden after the next start: got\n%s\nwant\n%s", got, want)
	}
}
