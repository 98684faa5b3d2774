package board_test

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/observe/why"
)

// The page explains a call by its attempts on one time axis, and by advice that links each field to its value and to
// its description. Hostile texts are escaped.
func TestWhyShowsAttemptsOnOneAxis(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	s := open(t, policy, "up")
	s.board.Page.Why = &stories{call: &why.Call{
		ID: "one", Upstream: "up", Operation: evil, Kind: why.Failed, Class: "failed", Key: evil, Why: evil, At: time.Now(), TookMS: 1000, HeldBack: 2,
		Attempts: []why.Attempt{
			{N: 1, WaitedMS: 100, TookMS: 100, Class: "throttled", Code: evil, Limit: evil, HintMS: 300},
			{N: 2, RestedMS: 300, TookMS: 400, Class: "failed", Code: "503"},
			{N: 5, RestedMS: 100, Reason: "rate_limited", Limit: "calls"},
		},
		Limits: []why.Limit{{Name: evil, Key: evil, Rule: "10/min", Unit: "requests", Cost: 1, Full: 10, Refused: true, At: evil}},
		Change: []why.Change{{Field: "limits.calls", At: "weir.yaml:4", Say: "raise it"}, {Field: "store.outage", Say: "wait"}, {Say: evil}},
	}}
	code, page := s.get("/why?id=one")
	if code != 200 || strings.Contains(page, "<script>") || strings.Contains(page, "style=") {
		t.Fatalf("a text is markup, or a style is inline: %d %s", code, page)
	}
	type bar struct {
		class    string
		x, width int
	}
	var bars []bar
	for _, m := range regexp.MustCompile(`<rect class="([a-z]+)" x="(\d+)" width="(\d+)"`).FindAllStringSubmatch(page, -1) {
		x, _ := strconv.Atoi(m[2])
		width, _ := strconv.Atoi(m[3])
		bars = append(bars, bar{m[1], x, width})
	}
	want := []bar{{"waited", 0, 100}, {"throttled", 100, 100}, {"rested", 200, 300}, {"failed", 500, 400}, {"rested", 900, 100}, {"refused", 996, 4}}
	if len(bars) != len(want) {
		t.Fatalf("bars %v, want %v", bars, want)
	}
	for i := range want {
		if bars[i] != want[i] {
			t.Errorf("bar %d is %v, want %v", i, bars[i], want[i])
		}
	}
	for _, want := range []string{
		"2 attempts not recorded in detail", "<span>0</span><span>500ms</span><span>1s</span>", "2 more attempts were not made",
		`href="config?q=` + url.QueryEscape("upstreams.up.limits.calls") + `"`, "configuration.md#upstreamsnamelimitsname", `href="config?q=store.outage"`, "configuration.md#store\"", "(weir.<wbr>yaml:<wbr>4)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q: %s", want, page)
		}
	}
}

// Bars stay on the axis for any record.
func TestWhyKeepsBarsOnTheAxis(t *testing.T) {
	s := open(t, policy, "up")
	for _, a := range []why.Attempt{{N: 1}, {N: 1, TookMS: -1}, {N: 1, WaitedMS: -1, RestedMS: -1, TookMS: 1e12}, {N: 1, TookMS: 1e-9}} {
		s.board.Page.Why = &stories{call: &why.Call{ID: "one", Upstream: "up", Kind: why.Waited, Class: "ok", Attempts: []why.Attempt{a}, Change: []why.Change{{Field: "max_wait"}}}}
		_, page := s.get("/why?id=one")
		for _, m := range regexp.MustCompile(`x="(-?\d+)" width="(-?\d+)"`).FindAllStringSubmatch(page, -1) {
			x, _ := strconv.Atoi(m[1])
			width, _ := strconv.Atoi(m[2])
			if x < 0 || width <= 0 || x+width > 1000 {
				t.Errorf("%+v: a bar from %d, %d wide", a, x, width)
			}
		}
	}
}
