package browser

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The page of weir sim fits each screen in both color schemes, loads nothing and reports no errors.
func TestSimPageFitsTheScreen(t *testing.T) {
	dir := t.TempDir()
	weir := filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", weir, "./cmd/weir")
	build.Dir = "../../.." // another module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "10.0.0.%d - - [30/Nov/2026:12:00:%02d +0000] \"GET /api/list HTTP/1.1\" 200 5 \"-\" \"curl\"\n", i%9, i/2)
	}
	for name, text := range map[string]string{
		"weir.yaml":  fmt.Sprintf("upstreams: {api: {url: %q, limits: {all: {rate: 9/s, burst: 9}}, max_body: 1MiB}}", "https://api.invalid"),
		"new.yaml":   fmt.Sprintf("upstreams: {api: {url: %q}}", "https://api.invalid"),
		"access.log": log.String(),
		"story.yaml": "story: an upstream that stalls, with a title-that-is-long-and-has-no-spaces-to-break-it-at\nmachine: {does: 60/s}\ncallers: {ask: 20/s}\n" +
			"trouble: [{at: 5s, for: 5s, what: stall}]\nlength: 30s\nexpect: {answered: '> 99%'}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tab, err := Open(chromium)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	for name, args := range map[string][]string{
		"stories": {"story.yaml"}, "search": {"--search", "--against", "new.yaml"}, "replay": {"--replay", "access.log", "--against", "new.yaml"},
	} {
		file := filepath.Join(dir, name+".html")
		c := exec.Command(weir, append([]string{"sim", "--html", file}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() == 2 {
			t.Fatalf("%v: %s", err, out)
		}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 1280} {
				address := url.URL{Scheme: "file", Path: file}
				run(t, tab, Scheme(scheme), chromedp.EmulateViewport(width, 900), chromedp.Navigate(address.String()), chromedp.WaitReady(chromedp.CSS("main")))
				for _, wrong := range get[[]string](t, tab, looks) {
					t.Errorf("%s at %d px, %s: %s", name, width, scheme, wrong)
				}
				if ground := get[string](t, tab, `getComputedStyle(document.body).backgroundColor`); (ground == "rgb(255, 255, 255)") != (scheme == "light") {
					t.Errorf("%s, %s: the ground is %s", name, scheme, ground)
				}
			}
		}
	}
	if err := tab.Behaved(""); err != nil { // the file itself
		t.Error(err)
	}
}
