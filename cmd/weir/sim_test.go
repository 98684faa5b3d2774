package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/observe/logs"
)

// simulate runs weir sim in a directory with the files and returns its exit status.
func simulate(t *testing.T, ctx context.Context, files map[string]string, args string) (status int, out, said string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"sim"}
	for _, word := range strings.Fields(args) {
		if strings.HasSuffix(word, ".yaml") || strings.HasSuffix(word, ".log") {
			word = filepath.Join(dir, word)
		}
		words = append(words, word)
	}
	var o, e bytes.Buffer
	err := run(ctx, world{args: words, out: &o, err: &e, env: noEnv})
	status = cli.Exit("weir", err, &e)
	return status, strings.ReplaceAll(o.String(), dir+string(filepath.Separator), ""), e.String()
}

const simConfig = `
listen: 127.0.0.1:0
notify: {ntfy_topic_env: TOPIC}
tls: {cert: nowhere.pem, key: nowhere.key}
store: {redis: "redis://nowhere.invalid:6379"}
upstreams:
  api: {url: "https://nowhere.invalid", limits: {all: {rate: 30/s, burst: 10}}, max_wait: 500ms, max_body: 1MiB, concurrency: auto}
  other: {url: "https://elsewhere.invalid"}
`

const simStory = `story: stall at noon
upstream: api
machine: {does: 60/s, takes: 50ms}
callers: {ask: 20/s, patience: 1s}
trouble: [{at: 5s, for: 5s, what: stall}]
length: 30s
`

// The six stories fit in 80 columns, and name what of the file is not played. Nothing that the file names is needed: no
// certificate, store, host or variable.
func TestSimPlaysTheStoriesOfAFile(t *testing.T) {
	t.Parallel()
	files := map[string]string{"weir.yaml": simConfig}
	status, out, said := simulate(t, t.Context(), files, "-config weir.yaml -upstream api")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{
		"not played: listen, notify, tls\n", "not played: max_body\n", "== upstream api ==", "twice the limit all",
		"retry storm", "breaker flap", "cold cache", "lease expiry", "noisy tenant", "store outage", "└ stall",
		"calls answered", "attempts sent", "time until 99% of calls are answered again", "without weir: stuck", "with the file: recovers in",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "upstream other") || !strings.Contains(said, "api: retry storm") {
		t.Errorf("got %s\n%s", out, said)
	}
}

func TestSimChecksExpectations(t *testing.T) {
	t.Parallel()
	for expect, want := range map[string]int{
		"expect: {recovered: < 8s, answered: '> 75%'}\n": 0,
		"expect: {recovered: < 8s, answered: '> 99%'}\n": 1,
	} {
		files := map[string]string{"weir.yaml": simConfig, "story.yaml": simStory + expect}
		status, out, said := simulate(t, t.Context(), files, "-config weir.yaml -seeds 2 -seed 4 story.yaml")
		repeat := strings.Contains(out, "--upstream api --seed 4 STORY.yaml")
		if status != want || strings.Count(out, "answered: ") != 2 || repeat != (want == 1) {
			t.Errorf("%s: status %d, want %d\n%s%s", expect, status, want, out, said)
		}
	}
}

// Two runs with the same seed print the same bytes.
func TestSimRepeatsWithItsSeed(t *testing.T) {
	t.Parallel()
	files := map[string]string{"weir.yaml": simConfig, "story.yaml": simStory}
	_, first, _ := simulate(t, t.Context(), files, "-config weir.yaml -json -seed 3 story.yaml")
	status, second, said := simulate(t, t.Context(), files, "-config weir.yaml -json -seed 3 story.yaml")
	if status != 0 || first != second || !json.Valid([]byte(first)) {
		t.Errorf("status %d: %s\n%s\n%s", status, said, first, second)
	}
	if _, other, _ := simulate(t, t.Context(), files, "-config weir.yaml -json -seed 5 story.yaml"); other == first {
		t.Error("another seed prints the same")
	}
}

// Wrong files and flags end with status 2 before anything is played.
func TestSimRefusesWrongInput(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"weir.yaml": simConfig, "story.yaml": simStory, "broken.yaml": "upstreams: {api: {limits: {all: 5}}}",
		"elsewhere.yaml": strings.Replace(simStory, "upstream: api", "upstream: aip", 1),
		"many.yaml":      strings.Replace(simStory, "ask: 20/s", "ask: 1000000000/s", 1),
		"endless.yaml":   strings.Replace(simStory, "for: 5s", "for: 24h", 1),
	}
	for args, want := range map[string]string{
		"-config gone.yaml":                            "no such file",
		"-config broken.yaml":                          "broken.yaml:1:",
		"-config weir.yaml -upstream aip":              `has no upstream "aip"; did you mean api?`,
		"-config weir.yaml elsewhere.yaml":             `has no upstream "aip"; did you mean api?`,
		"-config weir.yaml gone.yaml":                  "no such file",
		"-config weir.yaml weir.yaml":                  "is a configuration, not a story",
		"-config weir.yaml many.yaml":                  "want at most 5000000",
		"-config weir.yaml endless.yaml":               "no time remains to measure the recovery",
		"-config weir.yaml -seeds 0":                   "--seeds 0: want a number from 1 to 1000",
		"-config weir.yaml -against weir.yaml":         "--against needs --search or --replay",
		"-config weir.yaml -replay gone.log":           "no such file",
		"-config weir.yaml -replay story.yaml":         "story.yaml:1: unknown format: want weir's log as JSON, or an access log",
		"-config weir.yaml -replay weir.yaml -search":  "cannot be combined",
		"-config weir.yaml -search story.yaml":         "cannot be combined",
		"-config weir.yaml -search -against gone.yaml": "no such file",
	} {
		status, out, said := simulate(t, t.Context(), files, args)
		if status != 2 || !strings.Contains(said, want) || strings.Contains(out, "└") {
			t.Errorf("%s: status %d, %s%s\nwant %q", args, status, out, said, want)
		}
	}
}

// An interrupted command prints what it has found so far.
func TestSimPrintsWhatThereIsWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(simConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	say := &onText{text: "cold cache: the machine loses its cache, and misses take 10 times as long: with the file", then: cancel}
	err := run(ctx, world{args: []string{"sim", "-config", file, "-upstream", "api"}, out: &out, err: say, env: noEnv})
	if err == nil || !strings.Contains(err.Error(), "interrupted") || cli.Exit("weir", err, io.Discard) != 1 {
		t.Errorf("got %v", err)
	}
	if text := out.String(); !strings.Contains(text, "with the file: recovers") || !strings.Contains(text, "interrupted after") || strings.Contains(text, "lease expiry") {
		t.Errorf("got %s", text)
	}
}

// onText calls then when a text is written.
type onText struct {
	text string
	then func()
}

func (o *onText) Write(b []byte) (int, error) {
	if strings.Contains(string(b), o.text) {
		o.then()
	}
	return len(b), nil
}

// A file with each preset can be played.
func TestSimPlaysEveryPreset(t *testing.T) {
	t.Parallel()
	presets, err := filepath.Glob("../../sidecar/config/presets/*.yaml")
	if err != nil || len(presets) == 0 {
		t.Fatal(err)
	}
	text := "upstreams:\n"
	for _, file := range presets {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		text += "  " + name + ": {url: \"https://" + name + ".invalid\", preset: " + name + "}\n"
	}
	files := map[string]string{"weir.yaml": text, "story.yaml": "story: short\ntrouble: [{at: 2s, for: 1s, what: stall}]\nlength: 5s\n"}
	status, out, said := simulate(t, t.Context(), files, "-config weir.yaml story.yaml")
	if status != 0 || strings.Count(out, "== upstream ") != len(presets) || strings.Count(out, "with the file: ") != len(presets) {
		t.Errorf("status %d, %s%s", status, out, said)
	}
}

// An interrupted search prints the points that it has found.
func TestSimSearches(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(simConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"sim", "-config", file, "-upstream", "api", "-search", "-against", file}
	err := run(ctx, world{args: args, out: &out, err: &onText{text: "api: searched 2 of 18", then: cancel}, env: noEnv})
	if text := out.String(); err == nil || !strings.Contains(text, "not finished") || strings.Count(text, "not finished") > 16 || !strings.Contains(text, "without weir") {
		t.Errorf("got %v\n%s", err, text)
	}
}

// An access log is played with two files. Its lines belong to the upstreams of the first file, as requests do.
func TestSimReplaysAnAccessLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 600 {
		path := []string{"/api/list?q=hidden", "/other/x", "/gone/x"}[i%3]
		fmt.Fprintf(&log, "10.0.0.%d - - [30/Nov/2026:12:00:%02d +0000] \"GET %s HTTP/1.1\" 200 5 \"-\" \"curl\"\n", i%7, i/20, path)
	}
	files := map[string]string{
		"weir.yaml": simConfig, "access.log": log.String(),
		"new.yaml": strings.Replace(simConfig, "{rate: 30/s, burst: 10}", "{rate: 1/s, burst: 1}", 1),
	}
	const args = "-config weir.yaml -replay access.log -against new.yaml"
	status, out, said := simulate(t, t.Context(), files, args)
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{
		"400 calls in 600 lines, from 2026-11-30 12:00:00 to 2026-11-30 12:00:29 UTC", "not played, because they match no upstream: /gone (200)",
		"== upstream api ==", "== upstream other ==", "all: 200 calls\n", "  recorded ", "weir.yaml ", "new.yaml ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	_, first, _ := simulate(t, t.Context(), files, args+" -json -upstream api")
	_, second, _ := simulate(t, t.Context(), files, args+" -json -upstream api")
	var report simReport
	if err := json.Unmarshal([]byte(first), &report); err != nil || first != second || len(report.Upstreams) != 1 || len(report.Replay.Upstreams) != 1 {
		t.Fatalf("%v:\n%s\n%s", err, first, second)
	}
	f := report.Replay.Upstreams[0].Total.Flows
	if len(f) != 3 || f[0].Sent != 200 || f[1].Sent != 200 || f[2].Refused < 150 || f[2].Sent+f[2].Refused != 200 || strings.Contains(first, "10.0.0.") {
		t.Errorf("got %s", first)
	}
}

// A replay of a log with the same configuration has the results of the calls that weir logged.
func TestSimReplaysWeirsOwnLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var answers, refusals atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		l := slog.New(slog.NewJSONHandler(&log, nil))
		policy := weir.Policy{MaxWait: 2 * time.Second, Limits: []limit.Limit{{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 5}}}}
		u, err := weir.New("api", policy, weir.Options{Events: weir.Tee(logs.Events(l), logs.Attempts(l))})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			time.Sleep(100 * time.Millisecond)
			go func() {
				call := weir.Call{ID: fmt.Sprint(i), Safe: true, Keys: map[string]string{"tenant": []string{"loud", "loud", "loud", "quiet"}[i%4]}}
				_, err := weir.Do(t.Context(), u, call, func(context.Context) (int, error) { time.Sleep(30 * time.Millisecond); return 0, nil })
				if err == nil {
					answers.Add(1)
				} else {
					refusals.Add(1)
				}
			}()
		}
		time.Sleep(time.Minute)
	})
	answered, refused := int(answers.Load()), int(refusals.Load())
	config := `{upstreams: {api: {url: "https://api.invalid", max_wait: 2s, keys: {tenant: "header:X"}, limits: {tenant: {rate: 5/s, burst: 5, scope: tenant}}}}}`
	status, out, said := simulate(t, t.Context(), map[string]string{"weir.yaml": config, "weir.log": log.String()}, "-config weir.yaml -json -replay weir.log")
	var report simReport
	if err := json.Unmarshal([]byte(out), &report); status != 0 || err != nil {
		t.Fatalf("status %d, %v: %s%s", status, err, out, said)
	}
	u := report.Replay.Upstreams[0]
	was, is := u.Total.Flows[0], u.Total.Flows[1]
	if refused == 0 || was.Calls != 400 || was.Answered != answered || was.Refused != refused || is.Answered != answered || is.Refused != refused {
		t.Errorf("weir answered %d and refused %d\nrecorded %+v\nreplayed %+v", answered, refused, was, is)
	}
	if len(u.Clients) != 2 || *is.WaitP99 < 1500 || *is.WaitP99 > 2100 || *u.Clients[1].Flows[1].WaitP99 != 0 {
		t.Errorf("got %s", out)
	}
}
