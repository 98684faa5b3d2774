package main

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

var rewrite = flag.Bool("rewrite", false, "write what is drawn to testdata")

// outage returns a view with a failed upstream, a model that uses its second tier, and a healthy upstream.
func outage() *board.View {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	return &board.View{
		Report: status.Report{
			Version: "v1.2.3", Started: began,
			Fleet:      &status.Fleet{Store: "redis", Instances: 3, AwayMS: 5200, Why: "dial tcp 10.0.0.7:6379: connection refused"},
			Deliveries: &status.Deliveries{Upstreams: []status.Letters{{Upstream: "mail", Waiting: 12, Processing: 3, Completed: 800, Failed: 1}, {Upstream: "push", Waiting: 1}}},
			Troubles:   []status.Trouble{{With: "the store redis", Error: "it has not answered\x1b[31m since 12:03", Help: "see whether it runs"}},
		},
		At: began.Add(3*time.Hour + 2*time.Minute), Known: 103, Open: 1, Paused: 1, Hidden: 100,
		Sums: board.Sums{Allowed: 1520.4, Waited: 3, Refused: 14.5, Throttled: 0.3, Failed: 2},
		Upstreams: []*board.Row{
			{Upstream: status.Upstream{Name: "billing-with-a-name-of-some-length", Breakers: []status.Breaker{{State: "open", Why: "failures", WaitMS: 12000}}},
				State: "open", Sums: board.Sums{Refused: 12}, By: map[weir.Reason]float64{weir.CircuitOpen: 11.5, weir.RateLimited: 0.5}, Least: 80, P50MS: 1200, P99MS: 3100},
			{Upstream: status.Upstream{Name: "chat", Limits: []status.Limit{{Name: "tokens", Unit: "tokens", Rule: "100000/min burst 100000", Left: 4200, Full: 100000}},
				Model:  &status.Model{Tiers: []status.Tier{{Name: "primary", State: "open", Answered: 12, Failed: 7, Skipped: 31}, {Name: "secondary", State: "closed", Answered: 29, TakesMS: 840}}},
				Pauses: []status.Pause{{Of: "limit", Limit: "tokens", Reason: "rate", LeftMS: 4000}}},
				State: "paused", Sums: board.Sums{Allowed: 20.4, Waited: 3, Refused: 2.5}, Least: 4, Waiting: 7, P50MS: 840, P99MS: 2250},
			{Upstream: status.Upstream{Name: "s3"}, State: "ok", Sums: board.Sums{Allowed: 1500}, Least: -1, P50MS: 12.3, P99MS: 0.123},
		},
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: drawn is\n%s\nand not\n%s", name, got, want)
	}
}

// shown returns the visible text of a screen.
func shown(t *top) string {
	var b strings.Builder
	for _, l := range t.lines() {
		b.WriteString(strings.TrimRight(fit(l.text, t.width), " ") + "\n")
	}
	return b.String()
}

// A frame fits the screen at every size and shows the worst upstreams first.
func TestWhatTopDraws(t *testing.T) {
	for name, size := range map[string][2]int{"top-80x24": {80, 24}, "top-132x43": {132, 43}, "top-80x10": {80, 10}} {
		s := &top{view: outage(), sort: "worst", width: size[0], height: size[1]}
		golden(t, name, shown(s))
		for i, l := range strings.Split(shown(s), "\n") {
			if n := len([]rune(l)); n > size[0] || i > size[1] {
				t.Errorf("%s: line %d has %d columns", name, i, n)
			}
		}
	}
	golden(t, "top-plain", (&top{view: outage(), sort: "worst"}).plain())
}

// Control sequences in names and messages do not reach the terminal.
func TestNoWordsOfTerminalsArePassedOn(t *testing.T) {
	s := &top{view: outage(), sort: "worst", width: 80, height: 24, plainly: true}
	s.view.Upstreams[0].Name = "evil\x1b]0;owned\a\u009b31m"
	for _, l := range s.lines() {
		if strings.ContainsAny(fit(l.text, 80), "\x1b\a\u009b") {
			t.Errorf("%q", l.text)
		}
	}
	if frame := s.frame(); strings.Contains(frame, "\x1b[31m") || strings.Contains(frame, ";31m") {
		t.Errorf("there are colours: %q", frame)
	}
}

// Keys sort, filter, scroll and end.
func TestKeysOfTop(t *testing.T) {
	s := &top{view: outage(), sort: "worst", width: 80, height: 24}
	press := func(typed string) (end bool) {
		for _, k := range keysOf(typed) {
			end = s.press(k) || end
		}
		return end
	}
	first := func() string { return s.rows()[0].Name }
	for _, want := range []struct{ sort, first string }{{"name", "billing-with-a-name-of-some-length"}, {"rate", "s3"}, {"refused", "billing-with-a-name-of-some-length"}, {"left", "chat"}, {"p99", "billing-with-a-name-of-some-length"}, {"worst", "billing-with-a-name-of-some-length"}} {
		if press("s"); s.sort != want.sort || first() != want.first {
			t.Errorf("sorted by %s, first is %s; want %v", s.sort, first(), want)
		}
	}
	if press("j\x1b[B\x1b[A"); s.skip != 1 || strings.Contains(shown(s), "billing") {
		t.Errorf("%d are skipped", s.skip)
	}
	if press("\x1b[5~\x1b[5~k"); s.skip != 0 {
		t.Errorf("above the first: %d", s.skip)
	}
	if press("/s3q\x7f"); !s.typing || s.typed != "s3" || s.filter != "" || !strings.Contains(shown(s), "filter: s3_") {
		t.Errorf("it does not show what is typed: %q, %q", s.typed, s.filter)
	}
	if press("\r"); s.typing || s.filter != "s3" || !strings.Contains(shown(s), "(s3)") {
		t.Errorf("the filter is %q", s.filter)
	}
	if press("\x1b"); s.filter != "" {
		t.Errorf("the filter stays: %q", s.filter)
	}
	if press("\x1b[1;5C\x1b[15~") || s.typing || s.sort != "worst" {
		t.Error("keys that nobody knows did something")
	}
	if !press("q") || !press("\x03") {
		t.Error("it does not end")
	}
}

// two starts a weir with two upstreams.
func two(t *testing.T) sidecar {
	t.Helper()
	return sidecar{served.Begin(t, "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  api: {url: \"http://127.0.0.1:1\"}\n  mail: {url: \"http://127.0.0.1:1\"}\n")}
}

// Without a terminal, top prints the view of a running weir once, as plain text.
func TestTopOnce(t *testing.T) {
	s := two(t)
	top := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), world{args: append([]string{"top", "-admin", s.Serve.Admin}, args...), out: &out, err: io.Discard, env: noEnv})
		return out.String(), err
	}
	text, err := top()
	if err != nil || !strings.Contains(text, "2 upstreams") || !strings.Contains(text, "UPSTREAM") || strings.Contains(text, "\x1b") || strings.Index(text, "\napi") > strings.Index(text, "\nmail") {
		t.Errorf("%v %s", err, text)
	}
	if text, err := top("-once", "-filter", "mai"); err != nil || strings.Contains(text, "\napi") || !strings.Contains(text, "\nmail") {
		t.Errorf("filtered: %v %s", err, text)
	}
	if _, err := top("-sort", "age"); err != cli.ErrUsage {
		t.Errorf("an order that there is not: %v", err)
	}
	if _, err := top("-admin", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "is weir serve running") {
		t.Errorf("nobody answers: %v", err)
	}
}

// Another program may respond at the admin address.
func TestWhoIsNoWeir(t *testing.T) {
	for command, answer := range map[string]string{"top": `{"upstreams":[null]}`, "why": `{"calls":[{}]}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		args := []string{command, "-admin", s.Listener.Addr().String()}
		if command == "why" {
			args = append(args, "some")
		}
		if err := run(t.Context(), world{args: args, out: io.Discard, err: io.Discard, env: noEnv}); err == nil || !strings.Contains(err.Error(), "does not respond like weir") {
			t.Errorf("%s: got %v", command, err)
		}
		s.Close()
	}
}
