package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Dead letters are listed on the front page. Buttons redrive and drop them after a confirmation, with a reason that appears in
// the log.
func TestDeadLettersAreWorkedByButtons(t *testing.T) {
	dir := t.TempDir()
	w, tab := begin(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {file: %s/deliveries.db}
upstreams:
  api: {url: %%[1]s, routes: [{path: /box/, strip: true, deliver: always}]}
`, dir), none)
	w.Answers(http.StatusBadRequest)
	for range 2 {
		if code, err := w.Call("/box/x"); err != nil || code != http.StatusAccepted {
			t.Fatal(code, err)
		}
	}
	letters := func(which string) chromedp.Action[chromedp.Void] {
		return chromedp.WaitReady(chromedp.CSS(which)) // selected by position, because a poll ends with its page
	}
	press := func(do, why string) {
		t.Helper()
		run(t, tab, chromedp.Click(chromedp.CSS(fmt.Sprintf("td form:has(input[name=do][value=%s]) button", do))),
			chromedp.SendKeys(chromedp.CSS("input[name=reason]"), why+kb.Enter))
	}
	run(t, tab, chromedp.Navigate(home(w)), chromedp.WaitReady(chromedp.CSS(api)),
		chromedp.Poll[chromedp.Void](`(document.querySelector("#deliveries a") || {}).textContent === "2"`),
		chromedp.Click(chromedp.CSS("#deliveries a")), letters("tbody tr:nth-child(2) code"))
	w.Answers(http.StatusOK)
	press("redrive", "it is mended")
	run(t, tab, letters("tbody tr:only-child code"))
	press("drop", "nobody wants it")
	run(t, tab, letters("main > p:only-child"))
	if text := get[string](t, tab, `document.querySelector("main").textContent`); !strings.Contains(text, "There are none") {
		t.Errorf("the page says %q", text)
	}
	if log := w.Log(); !strings.Contains(log, `"why":"it is mended"`) || !strings.Contains(log, `"why":"nobody wants it"`) {
		t.Errorf("the log does not say who and why: %s", log)
	}
	if err := tab.Behaved(host(home(w))); err != nil {
		t.Error(err)
	}
}

// Over TLS a browser signs in with a token, the page is live, and its buttons work.
func TestThePageOverTLS(t *testing.T) {
	dir, secret := t.TempDir(), "the-secret-of-the-operators"
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servers.WriteCertificate(t, cert, key, time.Hour, time.Hour)
	more := fmt.Sprintf("hosts: [weir.test]\ntls: {cert: %s, key: %s}\nadmin_tls: true\nadmin_tokens: {ops: {env: OPS}}\n", cert, key)
	w, tab := begin(t, more+yaml, func(name string) (string, bool) { return secret, name == "OPS" })
	_, port, _ := strings.Cut(w.AdminAddr(), ":")
	run(t, tab, chromedp.Navigate("https://weir.test:"+port+"/"), chromedp.SendKeys(chromedp.CSS("input[name=token]"), secret+kb.Enter), chromedp.WaitReady(chromedp.CSS(api)),
		chromedp.Poll[chromedp.Void](`document.getElementById("live").textContent.startsWith("Live")`),
		chromedp.Click(chromedp.CSS(api+" .row")), chromedp.Click(chromedp.CSS(button("open"))),
		chromedp.SendKeys(chromedp.CSS("input[name=reason]"), "a drill"+kb.Enter), state("open"))
	if log := w.Log(); !strings.Contains(log, `"by":"ops"`) {
		t.Errorf("the log does not know who it was: %s", log)
	}
}

// Under an unknown name that resolves to weir, a browser gets no page.
func TestThePageIsNotShownUnderAnothersName(t *testing.T) {
	w, tab := begin(t, yaml, none)
	_, port, _ := strings.Cut(w.AdminAddr(), ":")
	for _, path := range []string{"/", "/row?name=api", "/v1/board", "/config"} {
		run(t, tab, chromedp.Navigate("http://evil.test:"+port+path), chromedp.WaitReady(chromedp.CSS("body")))
		if text := get[string](t, tab, `document.documentElement.textContent`); !strings.Contains(text, "a name of the admin listener") || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%s shows %s", path, text)
		}
	}
}
