package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// looks finds errors in the layout of a page: wider than the screen, text that is cut off or outside its box, a broken short
// word, and overlapping text.
const looks = `(() => {
	const wrong = [];
	const say = (what, e) => wrong.push(what + ": " + e.outerHTML.slice(0, 100));
	if (document.documentElement.scrollWidth > innerWidth) {
		wrong.push("the page scrolls sideways");
	}
	const hidden = (e) => getComputedStyle(e).clipPath !== "none" || e.closest("i") && getComputedStyle(e.closest("i")).clipPath !== "none";
	const boxes = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walk.nextNode());) {
		const e = node.parentElement;
		if (!node.data.trim() || e.closest("script, style, option") || hidden(e)) {
			continue;
		}
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const box of range.getClientRects()) {
			if (box.width > 0 && (box.right > innerWidth + 1 || box.left < 0)) {
				say("a text leaves the screen", e);
			}
			if (box.width > 1 && !e.closest(".heads")) {
				boxes.push([e, box]);
			}
		}
		for (let at = e; at && at !== document.body; at = at.parentElement) {
			const style = getComputedStyle(at);
			if (style.display !== "inline" && (style.overflowX === "hidden" || style.textOverflow === "ellipsis") && at.scrollWidth > at.clientWidth + 1) {
				say("a text is cut", at);
			}
		}
		for (const word of node.data.matchAll(/[^\s\-/.,:=_]+/g)) {
			if (word[0].length > 16) {
				continue;
			}
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			if (new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top))).size > 1) {
				say("the word " + word[0] + " is broken", e);
			}
		}
	}
	for (let i = 0; i < boxes.length; i++) {
		for (let j = i + 1; j < boxes.length && j < i + 40; j++) {
			const [a, r] = boxes[i], [b, s] = boxes[j];
			if (a !== b && Math.min(r.right, s.right) - Math.max(r.left, s.left) > 2 && Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 4) {
				say("it overlaps with " + b.outerHTML.slice(0, 60), a);
			}
		}
	}
	return wrong.slice(0, 5);
})()`

// many returns a configuration of two hundred upstreams, some with long names or names that look like markup.
func many() string {
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  api: {url: %[1]s, limits: {all: {rate: 1000/s, burst: 100}}}\n")
	for i := range 199 {
		fmt.Fprintf(&b, "  an-upstream-of-the-%s-%03d: {url: %%[1]s}\n", []string{"west", "european-region-with-a-long-name"}[i%2], i)
	}
	return b.String()
}

// In each state the headline is right. At every width and in both color schemes the layout has no errors.
func TestPageLooksRightInEachState(t *testing.T) {
	for name, c := range map[string]struct {
		yaml     string
		outage   bool
		headline string
	}{
		"healthy":             {yaml, false, "All is well: all 2 upstreams work"},
		"outage":              {yaml, true, "api is down: its breaker opened at "},
		"200 upstreams":       {many(), false, "All is well: all 200 upstreams work"},
		"outage of 1 in 200 ": {many(), true, "api is down: its breaker opened at "},
	} {
		t.Run(name, func(t *testing.T) {
			w, tab := begin(t, c.yaml, none)
			id := ""
			if c.outage {
				breaks(t, w)
				id = w.LastID()
			}
			pages := []string{"", "?open=api", "?q=nobody", "config", "dead?upstream=api"}
			if id != "" {
				pages = append(pages, "why?id="+id)
			}
			for _, scheme := range []string{"light", "dark"} {
				for _, width := range []int64{390, 768, 1280} {
					run(t, tab, Scheme(scheme), chromedp.EmulateViewport(width, 900))
					for _, path := range pages {
						run(t, tab, chromedp.Navigate(home(w)+path), chromedp.WaitReady(chromedp.CSS("main")))
						for _, wrong := range get[[]string](t, tab, looks) {
							t.Errorf("%q at %d px, %s: %s", path, width, scheme, wrong)
						}
						if path != "" {
							continue
						}
						if lead := get[string](t, tab, `document.querySelector("#headline .lead").textContent`); !strings.Contains(lead, c.headline) {
							t.Errorf("at %d px the headline is %q, want %q", width, lead, c.headline)
						}
						ground := get[string](t, tab, `getComputedStyle(document.body).backgroundColor`)
						if (ground == "rgb(255, 255, 255)") != (scheme == "light") {
							t.Errorf("%s: the ground is %s", scheme, ground)
						}
						if seen := get[bool](t, tab, `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#headline .lead").getBoundingClientRect())`); !seen {
							t.Errorf("at %d px the headline is not in sight", width)
						}
					}
				}
			}
		})
	}
}

// The legend and the axis of all plots stay visible while the upstreams scroll. All plots have the same axis.
func TestPlotsShareTheirAxis(t *testing.T) {
	w, tab := begin(t, yaml, none)
	for range 5 {
		if _, err := w.Call("/api/x"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Call("/a-name-that-is-as-long-as-names-may-be-with-no-place-to-be-cut/x"); err != nil {
			t.Fatal(err)
		}
	}
	w.Answers(http.StatusOK)
	for _, width := range []int64{390, 768, 1280} {
		run(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(home(w)),
			chromedp.Poll[chromedp.Void](`document.querySelectorAll(".row .plot").length === 2`)) // within two steps of 10 s
		apart := get[string](t, tab, `(() => {
			const ends = (e) => { const r = e.getBoundingClientRect(); return Math.round(r.left) + " to " + Math.round(r.right); };
			const plots = [...document.querySelectorAll(".row .plot")].map(ends);
			const axes = [...document.querySelectorAll(".axis")].filter((e) => e.getBoundingClientRect().width > 0).map(ends);
			return new Set(plots.concat(axes)).size === 1 ? "" : "plots " + plots + ", axes " + axes;
		})()`)
		if apart != "" {
			t.Errorf("at %d px the axes are not those of the plots: %s", width, apart)
		}
		if seen := get[int](t, tab, `(() => { const heads = document.querySelector(".heads"); document.body.style.paddingBottom = "3000px"; scrollTo(0, heads.offsetTop + 100); const r = heads.getBoundingClientRect(); return [...heads.querySelectorAll(".legend .key")].filter((e) => e.getBoundingClientRect().top >= 0).length; })()`); seen != 7 {
			t.Errorf("at %d px %d of 7 colors are explained in sight", width, seen)
		}
	}
}
