package learn

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func noEnv(string) (string, bool) { return "", false }

// patched applies a diff with patch.
func patched(t *testing.T, text string, diff []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("patch", "--binary", "--fuzz=0", file)
	cmd.Stdin = strings.NewReader("# reasons go before it\n" + string(diff))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("patch: %v: %s\n%s", err, out, diff)
	}
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(now)
}

var (
	put    = Limit{Operation: "put", Unit: limit.Requests, Rate: bucket.Rate{Amount: 48, Per: time.Second, Burst: 20}}
	all    = Limit{Unit: limit.Requests, Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 30}}
	tenant = Limit{Scope: "tenant", Unit: limit.Requests, Rate: bucket.Rate{Amount: 600, Per: time.Minute}}
	tokens = Limit{Unit: "tokens", Rate: bucket.Rate{Amount: 90000, Per: time.Minute}}
)

const head = "# ours\nupstreams:\n  other: {url: \"http://o\"}\n  api: # the one\n    url: http://a\n    keys: {tenant: \"header:X-Tenant\"}\n    operations: {put: {methods: [PUT]}}\n"

func TestChangesKeepTheRestOfTheFile(t *testing.T) {
	for _, c := range []struct {
		text   string
		limits []Limit
		want   string // lines that differ
	}{
		{head + "    limits:\n      a: 50/s # from the manual\n      w: {rate: 9/s, operations: put}\n    max_wait: 1s\n", []Limit{put, all, tenant},
			"-      a: 50/s # from the manual\n-      w: {rate: 9/s, operations: put}\n+      a: 100/s burst 30 # from the manual\n+      w: {rate: 48/s burst 20, operations: put}\n+      learned: {rate: 600/min, scope: tenant}\n"},
		{head + "    limits: {w: {burst: 5, rate: \"9/s\", operations: put}} # short", []Limit{put, tokens},
			"-    limits: {w: {burst: 5, rate: \"9/s\", operations: put}} # short\n\\ No newline at end of file\n+    limits: {w: {burst: 20, rate: 48/s, operations: put}, learned: {rate: 90000/min, unit: tokens}} # short\n\\ No newline at end of file\n"},
		{head + "\n# behind it\n", []Limit{all}, "+    limits:\n+      learned: 100/s burst 30\n"},
		{"upstreams: {api: {url: \"http://a\", routes: [{path: /a}]}, b: {url: \"http://b\"}}\n", []Limit{all},
			"-upstreams: {api: {url: \"http://a\", routes: [{path: /a}]}, b: {url: \"http://b\"}}\n+upstreams: {api: {url: \"http://a\", routes: [{path: /a}], limits: {learned: 100/s burst 30}}, b: {url: \"http://b\"}}\n"},
		{strings.ReplaceAll(head+"    limits:\n      learned: {rate: 5/s, scope: tenant}\n", "\n", "\r\n"), []Limit{put}, "+      learned_too: {rate: 48/s burst 20, operations: put}\r\n"},
		{head + "    limits: {}", []Limit{all}, "-    limits: {}\n\\ No newline at end of file\n+    limits: {learned: 100/s burst 30}\n\\ No newline at end of file\n"},
		{"upstreams:\n  api: {url: \"http://a\", preset: s3}\n", []Limit{{Operation: "PutObject", Unit: limit.Requests, Rate: put.Rate}}, ""},
	} {
		diff, says, err := Change("weir.yaml", []byte(c.text), noEnv, []Finding{{Upstream: "api", Limits: c.limits}})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if c.want == "" {
			if len(diff) > 0 || len(says) == 0 {
				t.Errorf("%s: %s, %q", c.text, diff, says)
			}
			continue
		}
		var got strings.Builder
		for line := range strings.Lines(string(diff)) {
			if strings.ContainsAny(line[:1], "+-\\") && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+++") {
				got.WriteString(line)
			}
		}
		if got.String() != c.want {
			t.Errorf("%s\nchanged by\n%swant\n%s\n%q", c.text, got.String(), c.want, says)
		}
		now := patched(t, c.text, diff)
		again, says, err := Change("weir.yaml", []byte(now), noEnv, []Finding{{Upstream: "api", Limits: c.limits}})
		if err != nil || len(again) > 0 {
			t.Errorf("a second time: %v\n%s\n%q", err, again, says)
		}
	}
}

// If a limit cannot be written in its place, Change says so and changes nothing.
func TestWhatCannotBeWrittenIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"upstreams: {b: {url: \"http://b\"}}\n":                                                              "the file has no such upstream",
		"upstreams: {api: {url: \"http://b\"}}\n":                                                            "the file has no key tenant",
		"upstreams: {api: {url: \"http://b\", keys: {tenant: \"header:X\"}, limits: off}}\n":                 "add limits:",
		"upstreams: {api: {url: \"http://b\", keys: {tenant: \"header:X\"}, limits: &x {t: {rate: 1/s}}}}\n": "add limits:",
	} {
		diff, says, err := Change("weir.yaml", []byte(text), noEnv, []Finding{{Upstream: "api", Limits: []Limit{tenant}}})
		if all := strings.Join(says, "\n"); err != nil || len(diff) > 0 || !strings.Contains(all, want) {
			t.Errorf("%s: %v\n%s\n%s, want %s", text, err, diff, all, want)
		}
	}
	diff, _, err := Change("weir.yaml", []byte("upstreams: {api: {url: \"http://b\", concurrency: 4}}\n"), noEnv, []Finding{{Upstream: "api", Flight: 12}})
	if err != nil || !strings.Contains(string(diff), "concurrency: 12}}") {
		t.Errorf("%v\n%s", err, diff)
	}
	// An environment variable overrides the file, so a change of the file would have no effect.
	set := func(name string) (string, bool) { return "7/s", name == "THROTTLE_PUT_RATE" }
	text := "upstreams: {api: {url: \"http://b\", operations: {put: {methods: [PUT]}}, limits: {put: {rate: 5/s, operations: put}}}}\n"
	diff, says, err := Change("weir.yaml", []byte(text), set, []Finding{{Upstream: "api", Limits: []Limit{put}}})
	if err != nil || len(diff) > 0 || len(says) != 1 {
		t.Errorf("%v\n%s\n%q", err, diff, says)
	}
	if _, _, err := Change("weir.yaml", []byte("upstreams: 5\n"), noEnv, nil); err == nil {
		t.Error("a file that is none is taken")
	}
}
