package board_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A site is a board with some upstreams, behind the guard of the admin listener.
type site struct {
	board *board.Board
	http.Handler
	up  map[string]*weir.Upstream
	log *bytes.Buffer
}

func open(t testing.TB, policy weir.Policy, names ...string) *site {
	t.Helper()
	s := &site{up: make(map[string]*weir.Upstream), log: new(bytes.Buffer)}
	s.board = board.New(slog.New(slog.NewTextHandler(s.log, nil)))
	for _, name := range names {
		u, err := weir.New(name, policy, weir.Options{Events: s.board.Events()})
		if err != nil {
			t.Fatal(err)
		}
		s.up[name] = u
	}
	page := &status.Page{Version: "v1", Started: time.Now(), Upstreams: func() map[string]*weir.Upstream { return s.up }, Board: s.board.Handler()}
	s.board.Page = page
	s.Handler = page.Handler()
	return s
}

func (s *site) ask(r *http.Request) (int, string) {
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (s *site) get(path string) (int, string) {
	return s.ask(httptest.NewRequest(http.MethodGet, path, nil))
}

var labels = regexp.MustCompile(` data-label="[^"]*"`)

// bare returns a page without the cell labels for narrow screens.
func bare(page string) string { return labels.ReplaceAllString(page, "") }

func (s *site) post(f url.Values, header ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/act", strings.NewReader(f.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.ask(r)
}

var tokens = regexp.MustCompile(`name="token" value="([^"]+)"`)

func (s *site) token(t *testing.T) string {
	t.Helper()
	_, page := s.get("/?open=up")
	found := tokens.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("no form has a token")
	}
	return found[1]
}

var policy = weir.Policy{
	Limits:  []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}}},
	Breaker: breaker.Config{}, MaxWait: -1,
}

// The page shows the activity of upstreams, the worst first, and their problems.
func TestThePageSaysWhatUpstreamsDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, policy, "calm", "busy", "shut")
		ctx, end := context.WithCancel(t.Context())
		go s.board.Run(ctx)
		for range 30 {
			var p weir.Permit
			if s.up["busy"].Try(weir.Call{}, &p).Allowed {
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
		if err := s.board.Page.Work(status.Order{Upstream: "shut", Do: "open"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		code, page := s.get("/?open=shut")
		if code != http.StatusOK {
			t.Fatal(code, page)
		}
		for _, want := range []string{"<b>1</b>/s <i>allowed</i>", "<b>2</b>/s <i>refused</i>", "refusing: rate_<wbr>limited", "■ open, by operator", `class="refused" d="M89`, "10 of 10"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		if _, row := s.get("/row?name=busy"); !strings.Contains(row, "Refused: rate_limited 2/s.") {
			t.Errorf("the row does not say why calls were refused: %s", row)
		}
		at := func(name string) int { return strings.Index(page, `id="u-`+name) }
		if !(0 < at("shut") && at("shut") < at("busy") && at("busy") < at("calm")) {
			t.Errorf("the worst is not first: %d, %d, %d", at("shut"), at("busy"), at("calm"))
		}
		if _, page := s.get("/?q=BUS"); strings.Contains(page, `id="u-calm"`) || !strings.Contains(page, `id="u-busy"`) {
			t.Error("the filter shows others")
		}
		if _, page := s.get("/?q=open"); strings.Contains(page, `id="u-calm"`) || !strings.Contains(page, `id="u-shut"`) {
			t.Error("the filter does not know states")
		}
		end()
	})
}

// Names with markup are escaped everywhere on the page.
func TestNamesAreNoMarkup(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	p := policy
	p.Limits = []limit.Limit{{Name: "calls", Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}}}
	s := open(t, p, "up")
	var permit weir.Permit
	s.up["up"].Try(weir.Call{Keys: map[string]string{"user": evil}}, &permit)
	_, page := s.get("/?q=" + url.QueryEscape(evil))
	if _, all := s.get("/?open=up"); strings.Contains(page+all, "<script>alert") || !strings.Contains(all, "&lt;script&gt;") {
		t.Errorf("markup of a key or a filter is on the page")
	}
}

// A button asks for confirmation and a reason, carries out the action, and logs it.
func TestAButtonAsksOnce(t *testing.T) {
	s := open(t, policy, "up")
	b := s.up["up"].Breaker("")
	f := url.Values{"token": {s.token(t)}, "upstream": {"up"}, "do": {"open"}, "for": {"5m"}}
	if code, page := s.post(f); code != http.StatusOK || !strings.Contains(page, "Please confirm") || b.Look(s.up["up"].Now()).Phase != breaker.Closed {
		t.Fatalf("it did not ask: %d %s", code, page)
	}
	f.Set("sure", "yes")
	if code, page := s.post(f); code != http.StatusBadRequest || !strings.Contains(page, "Give a reason") || b.Look(s.up["up"].Now()).Phase != breaker.Closed {
		t.Fatalf("it was done without a reason: %d", code)
	}
	f.Set("reason", "drill")
	if code, page := s.post(f); code != http.StatusSeeOther || b.Look(s.up["up"].Now()).Phase != breaker.Open {
		t.Fatalf("it was not done: %d %s", code, page)
	}
	if !strings.Contains(s.log.String(), "why=drill") || !strings.Contains(s.log.String(), "upstream=up") {
		t.Errorf("the log does not say it: %s", s.log)
	}
	for _, c := range []struct{ do, bad string }{{"open", "nonsense"}, {"close", "5m"}} {
		f.Set("do", c.do)
		f.Set("for", c.bad)
		if code, page := s.post(f); code != http.StatusBadRequest || !strings.Contains(page, "for ") {
			t.Errorf("%s for %s: %d", c.do, c.bad, code)
		}
	}
	pause := url.Values{"token": f["token"], "upstream": {"up"}, "do": {"pause"}, "for": {"1h"}, "sure": {"yes"}, "reason": {"drill"}}
	if code, page := s.post(pause); code != http.StatusSeeOther || len(s.up["up"].Look(0).Pauses) != 1 {
		t.Errorf("it was not paused: %d %s", code, page)
	}
	pause.Set("do", "resume")
	pause.Del("for")
	if code, page := s.post(pause); code != http.StatusSeeOther || len(s.up["up"].Look(0).Pauses) != 0 {
		t.Errorf("the pause was not lifted: %d %s", code, page)
	}
}

// A GET, a form of another page, and an expired form change nothing.
func TestOnlyAFormOfThePageDoesAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, policy, "up")
		token := s.token(t)
		f := url.Values{"token": {token}, "upstream": {"up"}, "do": {"open"}, "sure": {"yes"}, "reason": {"x"}}
		if code, _ := s.get("/act?" + f.Encode()); code != http.StatusMethodNotAllowed {
			t.Errorf("a GET: %d", code)
		}
		if code, _ := s.post(f, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
			t.Errorf("of another site: %d", code)
		}
		for _, bad := range []string{"", "x", "1.00", token + "0", strings.Replace(token, ".", ".0", 1)} {
			f.Set("token", bad)
			if code, _ := s.post(f); code != http.StatusForbidden {
				t.Errorf("token %q: %d", bad, code)
			}
		}
		for _, do := range []string{"redrive", "drop"} {
			if code, page := s.post(url.Values{"token": {token}, "do": {do}, "sure": {"yes"}, "reason": {"x"}}); code != http.StatusBadRequest || !strings.Contains(page, "upstream is missing") {
				t.Errorf("%s of no upstream: %d %s", do, code, page)
			}
		}
		time.Sleep(11 * time.Minute)
		f.Set("token", token)
		if code, _ := s.post(f); code != http.StatusForbidden {
			t.Errorf("an old form: %d", code)
		}
		if s.up["up"].Breaker("").Look(s.up["up"].Now()).Phase != breaker.Closed {
			t.Error("the breaker was opened")
		}
	})
}
