package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// calls makes n calls that end in a class.
func (s *site) calls(n int, upstream string, o outcome.Outcome) {
	for range n {
		var p weir.Permit
		if s.up[upstream].Try(weir.Call{}, &p).Allowed {
			p.Report(o)
		}
	}
}

var failed = outcome.Outcome{Class: outcome.Failed, Code: "503"}

// wide has a limit that no test reaches, and a breaker that opens after three failures in a row.
var wide = weir.Policy{
	Limits:  []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1000}}},
	Breaker: breaker.Config{Consecutive: 3, FirstOpen: time.Minute, Open: time.Hour}, MaxWait: -1,
}

// The headline states in one sentence that all is well, or which upstream has a problem, its cause and its start. The
// next line states what to do.
func TestHeadlineNamesUpstreamCauseAndTime(t *testing.T) {
	const up = `<up> & "co"` // a name is never markup
	for name, c := range map[string]struct {
		names  []string
		policy weir.Policy
		do     func(*site)
		want   []string // of the headline, as text
		help   string
	}{
		"no upstreams":    {nil, wide, nil, []string{"No upstream is configured"}, ""},
		"one upstream":    {[]string{up}, wide, nil, []string{"All is well: the upstream works"}, ""},
		"three upstreams": {[]string{up, "b", "c"}, wide, nil, []string{"All is well: all 3 upstreams work"}, ""},
		"a few failures are no problem": {[]string{up}, wide, func(s *site) {
			s.calls(1, up, failed)
			s.calls(50, up, outcome.Outcome{Class: outcome.OK})
		}, []string{"All is well"}, ""},
		"breaker opened": {[]string{up, "b"}, wide, func(s *site) { s.calls(3, up, failed) },
			[]string{up + " is down", "breaker opened at 00:00:00 UTC", "failures in a row", "last error: 503"}, "Check the upstream."},
		"two breakers opened": {[]string{up, "b", "c"}, wide, func(s *site) { s.calls(3, up, failed); s.calls(3, "b", failed) },
			[]string{"2 of 3 upstreams, including " + up + ", are down."}, "Check the upstream."},
		"breaker opened by an operator": {[]string{up}, wide, func(s *site) {
			_ = s.board.Page.Work(status.Order{Upstream: up, Do: "open"})
		}, []string{"An operator opened the breaker of " + up + " at 00:00:00 UTC"}, "Reset the breaker"},
		"paused by an operator": {[]string{up}, wide, func(s *site) {
			_, _ = s.board.Page.Hold(status.Pausing{Upstream: up, Do: "pause"})
		}, []string{"An operator paused calls to " + up + " until an operator resumes them"}, "weir resume"},
		"paused for a time": {[]string{up}, wide, func(s *site) {
			_, _ = s.board.Page.Hold(status.Pausing{Upstream: up, Do: "pause", For: "1h"})
		}, []string{"An operator paused calls to " + up + " until 01:00:00 UTC"}, "weir resume"},
		"the upstream asked to wait": {[]string{up}, wide, func(s *site) {
			s.calls(1, up, outcome.Outcome{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: time.Hour}})
		}, []string{"weir holds back calls to " + up, "until 00:15:00 UTC", "the upstream asked it to wait"}, "lower the limits"},
		"refused by a limit": {[]string{up}, policy, func(s *site) { s.calls(30, up, outcome.Outcome{Class: outcome.OK}) },
			[]string{"weir refuses 67% of the calls to " + up, "its limit is used up, since about 00:00 UTC"}, "Raise the limit"},
		"failing": {[]string{up}, wide, func(s *site) {
			for range 5 {
				s.calls(2, up, failed)
				s.calls(2, up, outcome.Outcome{Class: outcome.OK})
			}
		}, []string{"50% of the attempts to call " + up + " fail", "last error: 503", "since about 00:00 UTC"}, "Check the upstream."},
		"throttled": {[]string{up}, wide, func(s *site) {
			s.calls(5, up, outcome.Outcome{Class: outcome.Throttled, Code: "429"})
			s.calls(5, up, outcome.Outcome{Class: outcome.OK})
		}, []string{up, "throttle"}, ""},
		"the store is away": {[]string{up}, wide, func(s *site) {
			s.board.Page.Fleet = func() *status.Fleet {
				return &status.Fleet{Store: "redis", AwayMS: 5000, Why: "connection <refused>"}
			}
			s.board.Page.Troubles = func() []status.Trouble { return []status.Trouble{{With: "store redis", Error: "the same"}} }
		}, []string{"The redis store has not answered since 00:00:06 UTC: connection <refused>."}, "Check that the store runs"},
		"credentials are missing": {[]string{up}, wide, func(s *site) {
			s.board.Page.Troubles = func() []status.Trouble {
				return []status.Trouble{{With: "credentials of upstream " + up, Upstream: up, Error: "no <credentials>", Help: "set AWS_ACCESS_KEY_ID", Since: time.Now().Add(-time.Minute)}}
			}
		}, []string{"weir cannot call " + up, "no <credentials>", "since 23:59:11 UTC"}, "set AWS_ACCESS_KEY_ID."},
		"a reload failed": {[]string{up}, wide, func(s *site) {
			s.board.Page.Config = func() *status.Config {
				return &status.Config{File: "weir.yaml", FailedAt: time.Now(), Error: "line <3> is wrong"}
			}
		}, []string{"The reload at 00:00:11 UTC failed", "line <3> is wrong"}, "weir check"},
		"the store of deliveries is away": {[]string{up}, wide, func(s *site) {
			s.board.Page.Counts = func(context.Context) ([]delivery.Count, error) { return nil, errors.New("no <database>") }
		}, []string{"The store of deliveries does not answer: no <database>."}, "Deliveries wait"},
		"dead letters": {[]string{up}, wide, func(s *site) {
			s.board.Page.Counts = func(context.Context) ([]delivery.Count, error) {
				return []delivery.Count{{Upstream: up, Status: delivery.Failed, N: 2, Oldest: time.Now()}}, nil
			}
		}, []string{"2 messages to " + up + " could not be delivered, the oldest since 00:00:11 UTC."}, "Find out why"},
		"shutting down": {[]string{up}, wide, func(s *site) { s.board.Page.Draining.Store(true) }, []string{"This weir is shutting down."}, "another weir"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, c.policy, c.names...)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go s.board.Run(ctx)
				if c.do != nil {
					c.do(s)
				}
				time.Sleep(11 * time.Second)
				code, page := s.get("/")
				if code != http.StatusOK {
					t.Fatal(code, page)
				}
				part := page[strings.Index(page, `<div id="headline">`):strings.Index(page, `<div id="tiles">`)]
				lead := plain(part[:strings.Index(part, "</p>")])
				for _, want := range c.want {
					if !strings.Contains(lead, want) {
						t.Errorf("the headline does not say %q: %s", want, lead)
					}
				}
				if !strings.Contains(plain(part), c.help) {
					t.Errorf("the page does not say %q: %s", c.help, plain(part))
				}
				if strings.Contains(page, up) || strings.Contains(page, "<refused>") || strings.Contains(page, "<credentials>") {
					t.Error("a name or an error is markup")
				}
				_, text := s.get("/v1/overview")
				var v board.View
				if err := json.Unmarshal([]byte(text), &v); err != nil || !strings.Contains(lead, v.Headline) || v.Headline == "" {
					t.Errorf("as JSON the headline is %q, on the page %q: %v", v.Headline, lead, err)
				}
			})
		})
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// plain returns the text of a page.
func plain(page string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&").Replace(tags.ReplaceAllString(page, ""))
}

// With many problems, the worst are described, and the others counted.
func TestHeadlineCountsManyProblems(t *testing.T) {
	names := make([]string, 40)
	for i := range names {
		names[i] = "up-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	s := open(t, wide, names...)
	for _, name := range names[:30] {
		s.calls(3, name, failed)
	}
	_, page := s.get("/")
	for _, want := range []string{"30 of 40 upstreams, including ", "30 problems:", "and 24 more"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
