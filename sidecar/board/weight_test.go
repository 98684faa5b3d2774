package board_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// outside matches addresses of other hosts that a browser would load without a click.
var outside = regexp.MustCompile(`(src|action|srcset|data)="?(https?:)?//|<(link|base|meta|object|iframe|img)[^>]*//|@import|url\(|https?://[^"]*"[^>]*rel="?(stylesheet|preload|prefetch)|(fetch|EventSource|Request)\([^)]*//`)

// The page is small even if all of twice as many upstreams as it shows were active in each step, and its files load
// nothing from other hosts.
func TestThePageIsSmallAndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, 200) // twice as many as it shows
		for i := range names {
			names[i] = fmt.Sprintf("an-upstream-with-a-name-of-some-length-%04d", i)
		}
		busy := policy
		busy.Limits = []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 3, Per: time.Second, Burst: 20}}}
		s := open(t, busy, names...)
		ctx, end := context.WithCancel(t.Context())
		go s.board.Run(ctx)
		r := rand.New(rand.NewPCG(1, 2))
		for range 95 {
			for _, name := range names[:120] {
				u := s.up[name]
				for range r.IntN(40) {
					var p weir.Permit
					if u.Try(weir.Call{}, &p).Allowed {
						p.Report(outcome.Outcome{Class: outcome.OK})
					}
				}
			}
			time.Sleep(10 * time.Second)
		}
		raw, packed := 0, 0
		for _, path := range []string{"/", "/style.css", "/live.js"} {
			w := httptest.NewRecorder()
			q := httptest.NewRequest(http.MethodGet, path, nil)
			q.Host = "localhost"
			q.Header.Set("Accept-Encoding", "gzip")
			s.ServeHTTP(w, q)
			if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") ||
				w.Header().Get("Referrer-Policy") != "same-origin" { // with no-referrer browsers send Origin: null, and every button is refused
				t.Errorf("%s: %d %v", path, w.Code, w.Header())
			}
			packed += w.Body.Len()
			_, plain := s.get(path)
			raw += len(plain)
			if found := outside.FindString(plain); found != "" {
				t.Errorf("%s loads something from another host: %s", path, found)
			}
		}
		t.Logf("%d KiB raw, %d KiB packed", raw>>10, packed>>10)
		if raw > 150<<10 || packed > 60<<10 {
			t.Errorf("the page has %d bytes, %d packed", raw, packed)
		}
		end()
	})
}

// The page is served only under weir's own names. A browser that reached it by another site's name gets no page.
func TestThePageIsOnlyUnderItsNames(t *testing.T) {
	s := open(t, policy, "up")
	for _, path := range []string{"/", "/live", "/row?name=up", "/v1/overview", "/v1/board", "/config", "/why"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "evil.example"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, nil)))
		if body, _ := io.ReadAll(w.Body); w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
	}
}

// A row can be opened by a link, and loaded by itself. An unknown upstream has none.
func TestARowIsOpened(t *testing.T) {
	names := make([]string, 150)
	for i := range names {
		names[i] = fmt.Sprintf("up-%03d", i)
	}
	s := open(t, policy, names...)
	_, shut := s.get("/")
	if strings.Contains(shut, "<form method=\"post\"") || !strings.Contains(shut, `href="?open=up-007#u-up-007"`) || strings.Contains(shut, `id="u-up-140"`) {
		t.Error("rows are open, lead nowhere, or all of them are there")
	}
	_, page := s.get("/?open=up-140")
	if strings.Count(page, `class="inner"`) != 1 || !strings.Contains(page, `id="u-up-140"`) || !strings.Contains(page, "49 more upstreams") {
		t.Error("the row that matters least is not opened, or others are")
	}
	code, row := s.get("/row?name=up-140")
	if i := strings.Index(page, `<table class="wide"><caption>Limits`); code != http.StatusOK || i < 0 || !strings.Contains(row, page[i:i+200]) {
		t.Errorf("by itself it is another: %d %s", code, row)
	}
	if code, _ := s.get("/row?name=nobody"); code != http.StatusNotFound {
		t.Errorf("of no upstream: %d", code)
	}
}

// An opening that ends before the next step is still on the plot, and its breaker changes are listed.
func TestABriefOpeningIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, policy, "up")
		ctx, end := context.WithCancel(t.Context())
		go s.board.Run(ctx)
		time.Sleep(11 * time.Second)
		for _, do := range []string{"open", "reset"} {
			if err := s.board.Page.Work(status.Order{Upstream: "up", Do: do}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(10 * time.Second)
		_, page := s.get("/?open=up")
		for _, want := range []string{`<path class="open"`, "Breaker changes", `<td>● closed<td><span class="state open">■ open</span><td>an operator`, `<td>■ open<td><span class="state closed">● closed</span>`} {
			if !strings.Contains(bare(page), want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		end()
	})
}

// The JSON view contains the information of the page.
func TestTheViewAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, policy, "calm", "busy")
		ctx, end := context.WithCancel(t.Context())
		go s.board.Run(ctx)
		for range 30 {
			var p weir.Permit
			if s.up["busy"].Try(weir.Call{}, &p).Allowed {
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
		time.Sleep(11 * time.Second)
		code, text := s.get("/v1/board")
		var v board.View
		if err := json.Unmarshal([]byte(text), &v); err != nil || code != http.StatusOK {
			t.Fatal(code, err, text)
		}
		if len(v.Upstreams) != 2 || v.Upstreams[0].Name != "busy" || v.Upstreams[0].By[weir.RateLimited] != 2 || v.Upstreams[0].State != "refusing" || v.Allowed != 1 || v.Known != 2 || v.Version != "v1" {
			t.Errorf("%s", text)
		}
		if _, text := s.get("/v1/board?q=nobody"); !strings.Contains(text, `"upstreams":[]`) {
			t.Errorf("of none: %s", text)
		}
		end()
	})
}
