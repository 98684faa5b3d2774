package serve

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
)

// seen returns a page of the admin listener.
func seen(t *testing.T, s *Server, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + s.admin.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return html.UnescapeString(layout.ReplaceAllString(string(text), ""))
}

// layout matches markup for narrow screens.
var layout = regexp.MustCompile(`<wbr>| data-label="[^"]*"`)

// The page shows the settings in force, their sources, settings that need a restart, and a failed reload.
func TestThePageSaysWhatIsInForce(t *testing.T) {
	const yaml = `listen: 127.0.0.1:0
admin: 127.0.0.1:0
max_header: 16KiB
upstreams:
  s3: {url: "https://s3.example", preset: s3, limits: {get: 500/s}}
`
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(yaml)
	s := startFile(t, file)
	if text := seen(t, s.Server, "/"); !strings.Contains(text, file) || strings.Contains(text, "✖ The reload") {
		t.Errorf("the page does not name the file, or complains: %s", text)
	}
	text := seen(t, s.Server, "/config?q=upstreams.s3.")
	for _, want := range []string{"<td>upstreams.s3.limits.get<td><code>500/s</code><td>" + file + ":5", "preset s3 (" + file + ":5)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if strings.Contains(text, "<td>listen") {
		t.Error("the filter shows other fields")
	}

	put(strings.Replace(yaml, "500/s", "-1/s", 1))
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reload: nothing was changed")
	if text := seen(t, s.Server, "/"); !strings.Contains(text, "✖ The reload") || !strings.Contains(text, "upstreams.s3.limits.get") {
		t.Errorf("the page does not say that the reload failed")
	}
	if text := seen(t, s.Server, "/config"); !strings.Contains(text, "<code>500/s</code>") {
		t.Error("shown is what is not in force")
	}

	put(strings.NewReplacer("500/s", "600/s", "16KiB", "32KiB").Replace(yaml))
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	if text := seen(t, s.Server, "/"); strings.Contains(text, "✖ The reload") || !strings.Contains(text, "These fields need a restart: max_header") {
		t.Error("after a good reload it still complains, or does not say what waits")
	}
	all := s.page.Settings()
	for _, want := range []doc.Setting{{Field: "max_header", Value: "16KiB", From: file + ":3"}, {Field: "upstreams.s3.limits.get", Value: "600/s", From: file + ":5"}} {
		if !slices.Contains(all, want) {
			t.Errorf("%v is not in force", want)
		}
	}
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// A dead letter is on the page. Buttons redrive it and delete it, with a reason.
func TestDeadLettersAreWorkedOnThePage(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	m.answers(http.StatusBadRequest)
	_, first, _ := m.post("/box/x", "1")
	_, second, _ := m.post("/box/x", "2")
	m.becomes(first.ID, delivery.Failed)
	m.becomes(second.ID, delivery.Failed)
	front, list := seen(t, m.run.Server, "/"), seen(t, m.run.Server, "/dead?upstream=box")
	if !strings.Contains(front, `<a href="dead?upstream=box">2</a>`) || !strings.Contains(list, first.ID) || !strings.Contains(list, second.ID) {
		t.Fatalf("they are not shown: %s %s", front, list)
	}
	press := func(do, id, reason string) int {
		t.Helper()
		f := url.Values{"token": {formToken.FindStringSubmatch(list)[1]}, "upstream": {"box"}, "do": {do}, "sure": {"yes"}, "reason": {reason}}
		if id != "" {
			f.Set("id", id)
		}
		stay := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := stay.PostForm("http://"+m.run.admin.Addr().String()+"/act", f)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if code := press("drop", "", "all of them"); code != http.StatusBadRequest {
		t.Errorf("a drop of all: %d", code)
	}
	if code := press("redrive", first.ID, ""); code != http.StatusBadRequest {
		t.Errorf("without a reason: %d", code)
	}
	m.answers(http.StatusOK)
	if code := press("redrive", first.ID, "mended"); code != http.StatusSeeOther {
		t.Errorf("redrive: %d", code)
	}
	m.becomes(first.ID, delivery.Completed)
	if code := press("redrive", first.ID, "again"); code != http.StatusBadRequest {
		t.Errorf("what was delivered is sent again: %d", code)
	}
	m.becomes(second.ID, delivery.Failed)
	if code := press("drop", second.ID, "nobody wants it"); code != http.StatusSeeOther {
		t.Errorf("drop: %d", code)
	}
	if list = seen(t, m.run.Server, "/dead?upstream=box"); !strings.Contains(list, "There are none") {
		t.Errorf("some are left: %s", list)
	}
}
