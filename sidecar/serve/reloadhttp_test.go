package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// A caller with rights on the admin listener can reload the file, and gets its errors. The status shows a failed reload
// until the file is fixed.
func TestReloadOverHTTP(t *testing.T) {
	t.Parallel()
	url := echo(t)
	s := start(t, url, "")
	post := func(fields ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.admin.Addr().String()+"/v1/reload", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	was := s.page.Report(t.Context()).Config
	if was == nil || was.File != s.file || was.Loaded.IsZero() || was.Error != "" {
		t.Errorf("the status has %+v", was)
	}
	write(t, s.file, url, "max_header: 1KiB")
	if code, text := post("Origin", "https://elsewhere.example"); code != http.StatusForbidden {
		t.Errorf("for a page of another site: %d %s", code, text)
	}
	code, text := post()
	var c status.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil || code != 200 || strings.Join(c.Pending, " ") != "max_header" || c.Loaded.Before(was.Loaded) {
		t.Errorf("a good file: %d %s", code, text)
	}
	s.log.waitFor(t, "operator action")

	if err := os.WriteFile(s.file, []byte("upstreams: {up: {url: 7}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text = post(); code != http.StatusBadRequest || !strings.Contains(text, "upstreams.up.url") {
		t.Errorf("a bad file: %d %s", code, text)
	}
	bad := s.page.Report(t.Context()).Config
	if !strings.Contains(bad.Error, "upstreams.up.url") || bad.FailedAt.IsZero() || !bad.Loaded.Equal(c.Loaded) || strings.Join(bad.Pending, " ") != "max_header" {
		t.Errorf("after a bad file the status has %+v", bad)
	}
	write(t, s.file, url, "")
	if code, text = post(); code != 200 {
		t.Errorf("the file is mended: %d %s", code, text)
	}
	if c := s.page.Report(t.Context()).Config; c.Error != "" || !c.FailedAt.IsZero() || len(c.Pending) > 0 {
		t.Errorf("when it is mended the status has %+v", c)
	}
}
