package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const yaml = `listen: 127.0.0.1:0
admin: 127.0.0.1:0
upstreams:
  api:
    url: %[1]s
    limits: {all: {rate: 1000/s, burst: 100}, per-tenant: {rate: 500/s, scope: tenant}}
    keys: {tenant: "header:X-Tenant"}
  a-name-that-is-as-long-as-names-may-be-with-no-place-to-be-cut: {url: %[1]s, preset: s3}
`

// begin starts weir and opens a tab.
func begin(t *testing.T, yaml string, env func(string) (string, bool)) (*Weir, *Tab) {
	t.Helper()
	w, err := Serve(t.TempDir(), yaml, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.End(); err != nil {
			t.Error(err)
		}
	})
	tab, err := Open(chromium)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tab.Context, patience)
	close := tab.Close
	tab.Context, tab.Close = ctx, func() { cancel(); close() }
	t.Cleanup(tab.Close)
	return w, tab
}

func none(string) (string, bool) { return "", false }

// run performs actions in a tab.
func run(t *testing.T, tab *Tab, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, actions...); err != nil {
		t.Fatal(err)
	}
}

// get evaluates an expression in a tab.
func get[T any](t *testing.T, tab *Tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func home(w *Weir) string { return "http://" + w.AdminAddr() + "/" }

// host returns the host of an address.
func host(address string) string {
	u, _ := url.Parse(address)
	return u.Host
}

const api = "#u-api"

// state waits until the page shows the upstream in a state.
func state(word string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitReady(chromedp.CSS(api + " .row .state." + word))
}

// breaks makes failing calls until the upstream's breaker has opened.
func breaks(t *testing.T, w *Weir) {
	t.Helper()
	w.Answers(http.StatusInternalServerError)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		code, err := w.Call("/api/x")
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusServiceUnavailable {
			return
		}
	}
	t.Fatal("the breaker did not open")
}

// An open page shows an outage. The keyboard alone can open the breaker manually, with a reason that appears in the log. The
// page requests no other host and reports no errors.
func TestAnOutageIsSeenAndABreakerWorked(t *testing.T) {
	w, tab := begin(t, yaml, none)
	run(t, tab, chromedp.Navigate(home(w)), chromedp.WaitReady(chromedp.CSS(api)), state("ok"),
		chromedp.Poll[chromedp.Void](`document.getElementById("live").textContent.startsWith("Live")`))
	breaks(t, w)
	run(t, tab, state("open"), chromedp.Focus(chromedp.CSS(api+" .row")), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(chromedp.CSS(api+" .inner")))
	// Open parts stay open, and the focus stays, when the page is updated.
	run(t, tab, chromedp.Poll[chromedp.Void](`(e => e && (e.dataset.old = "yes"))(document.querySelector("#u-api .inner")?.firstElementChild)`)) // appears a moment later
	run(t, tab, chromedp.Poll[chromedp.Void](`!document.querySelector("#u-api .inner").firstElementChild.dataset.old && document.activeElement.matches("#u-api .row")`))
	run(t, tab, chromedp.WaitReady(chromedp.CSS(button("close"))), chromedp.Focus(chromedp.CSS(button("close"))), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("input[name=reason]")))
	run(t, tab, chromedp.Poll[chromedp.Void](`document.activeElement.name === "reason"`), chromedp.KeyEvent("it is a drill"), chromedp.KeyEvent(kb.Enter), chromedp.WaitReady(chromedp.CSS(api)),
		chromedp.Poll[chromedp.Void](`document.querySelector("#u-api").textContent.includes("closed, by operator")`))
	if log := w.Log(); !strings.Contains(log, "it is a drill") || !strings.Contains(log, "operator action") {
		t.Errorf("the log does not say who and why: %s", log)
	}
	if err := tab.Behaved(host(home(w))); err != nil {
		t.Error(err)
	}
}

// button selects a button of the upstream.
func button(do string) string {
	return fmt.Sprintf(`%s form:has(input[name=do][value=%s]) button`, api, do)
}

// Without scripts the page shows the same, and its buttons work.
func TestThePageWorksWithoutScripts(t *testing.T) {
	w, tab := begin(t, yaml, none)
	off := chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	run(t, tab, off, chromedp.Navigate(home(w)), state("ok"))
	said, err := chromedp.Run(tab, chromedp.Text(chromedp.CSS("#live")))
	if err != nil {
		t.Fatal(err)
	}
	run(t, tab, chromedp.Click(chromedp.CSS(api+" .row")), chromedp.Click(chromedp.CSS(button("open"))),
		chromedp.SendKeys(chromedp.CSS("input[name=for]"), "5m"), chromedp.SendKeys(chromedp.CSS("input[name=reason]"), "a drill"),
		chromedp.Click(chromedp.CSS("button.do")), state("open"))
	if !strings.HasPrefix(said, "Reload this page") {
		t.Errorf("it says %q", said)
	}
	if err := tab.Behaved(host(home(w))); err != nil {
		t.Error(err)
	}
}

// On a phone no part is wider than the screen when it is open. On a large screen the page fills it.
func TestThePageFitsTheScreen(t *testing.T) {
	w, tab := begin(t, yaml, none)
	for range 20 {
		if _, err := w.Call("/api/x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int64{360, 3840} {
		run(t, tab, chromedp.EmulateViewport(width, 740))
		for _, path := range []string{"", "config", "dead?upstream=api", "?q=nobody"} {
			run(t, tab, chromedp.Navigate(home(w)+path), chromedp.WaitReady(chromedp.CSS("main")),
				chromedp.Poll[chromedp.Void](`[...document.querySelectorAll(".row")].every((r) => { const inner = r.parentElement.querySelector(".inner"); if (!inner) r.click(); return inner && inner.querySelector("table"); })`))
			wide := get[[]string](t, tab, `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 80))`)
			if len(wide) > 0 {
				t.Errorf("%q on a screen of %d: wider than it is %q", path, width, wide[0])
			}
		}
	}
}

// Under a name of another machine a browser signs in once, and then its buttons work, also without TLS, where browsers send
// fewer headers.
func TestABrowserSignsIn(t *testing.T) {
	const secret = "the-secret-of-the-operators"
	more := "hosts: [weir.test]\nadmin_tokens: {ops: {env: OPS}}\n"
	w, tab := begin(t, more+yaml, func(name string) (string, bool) { return secret, name == "OPS" })
	_, port, _ := strings.Cut(w.AdminAddr(), ":")
	at := "http://weir.test:" + port + "/"
	run(t, tab, chromedp.EmulateViewport(360, 740), chromedp.Navigate(at), chromedp.WaitVisible(chromedp.CSS("input[name=token]")))
	wide := get[bool](t, tab, `document.documentElement.scrollWidth > innerWidth`)
	run(t, tab, chromedp.SendKeys(chromedp.CSS("input[name=token]"), "another"+kb.Enter), chromedp.WaitVisible(chromedp.CSS("[role=alert]")),
		chromedp.SendKeys(chromedp.CSS("input[name=token]"), secret+kb.Enter), chromedp.WaitReady(chromedp.CSS(api)),
		chromedp.Poll[chromedp.Void](`document.getElementById("live").textContent.startsWith("Live")`),
		chromedp.Click(chromedp.CSS(api+" .row")), chromedp.Click(chromedp.CSS(button("open"))),
		chromedp.SendKeys(chromedp.CSS("input[name=reason]"), "a drill"+kb.Enter), state("open"))
	form := get[bool](t, tab, `document.cookie === "" && document.querySelector("form[action=logout]") !== null`)
	if !form || wide {
		t.Errorf("scripts see the cookie, or nobody can sign out: %v; the form is too wide: %v", !form, wide)
	}
	if log := w.Log(); !strings.Contains(log, `"by":"ops"`) {
		t.Errorf("the log does not know who it was: %s", log)
	}
	run(t, tab, chromedp.Click(chromedp.CSS("form[action=logout] button")), chromedp.WaitVisible(chromedp.CSS("input[name=token]")))
}
