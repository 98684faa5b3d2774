package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// everyRemoved has every removed or renamed field that everyField does not have.
const everyRemoved = `
store: {memory: true, coast: 30s}
deliveries: {file: d.db}
traces: {url: "http://127.0.0.1:4318", central: true, jaeger: "http://127.0.0.1:16686"}
callers:
  limits: {org: {rate: 5/s, told: x}, team: {rate: 5/s, local: true, max_keys: 9, adaptive: {cut: 50%, grow: 1.1, step: 2%, recovery: 5s, interval: 1s, cut_interval: 1s, used_share: 50%}}}
upstreams:
  a:
    url: https://h
    operations: {put: {path: /p, retry: aws, concurrency: 5, deliver: false}, get: {idempotency: keep, idempotency_busy: wait, idempotency_failed: keep}}
    limits: {put: {rate: 9/s, told: requests}}
    ask_again: {schedule: aws, throttle_base: 20ms, low: 0.5, high: 2, added: 1s, max_hint: 10s, hint_slack: 1s, retry_on: [throttled], not_codes: [B]}
    timeouts: {upload_idle: 30s, upload_over: 10s}
  b:
    url: https://i
    routes: [{path: /e/, websocket: true}]
    websocket: {realtime: true}
`

// removedIn returns the removed or renamed fields of a file, by path.
func removedIn(t *testing.T, yaml string) map[string]string {
	t.Helper()
	f := parse(t, yaml)
	accepted(t, f)
	all := make(map[string]string)
	for _, c := range f.Removed() {
		if c.Line == 0 || c.Hint == "" {
			t.Errorf("%v: want a line and what to use instead", c)
		}
		all[c.Field] = c.Problem
	}
	return all
}

func TestRemovedFieldsAreAcceptedWithWarning(t *testing.T) {
	found := removedIn(t, everyField)
	for field, problem := range removedIn(t, everyRemoved) {
		found[field] = problem
	}
	for field, problem := range removedIn(t, "store: {memory: true, share: 10%}\nupstreams: {a: {url: https://h}}\n") {
		found[field] = problem
	}
	for field, problem := range removedIn(t, "deliveries: {aws: {table: weir, queue: 'https://sqs.eu-central-1.amazonaws.com/123456789012/weir', endpoint: 'http://localhost:8000'}}\nupstreams: {a: {url: https://h}}\n") {
		found[field] = problem
	}
	for _, r := range removals {
		for _, name := range strings.Fields(r.names) {
			path := strings.TrimPrefix(r.at+"."+name, ".")
			pattern := regexp.MustCompile("^" + strings.NewReplacer(".", `\.`, "*", `[^.]+`, "[]", `\[\d+\]`).Replace(path) + "$")
			want := map[string]string{applies: "is deprecated", ignored: "no effect"}[r.to]
			if want == "" {
				want = "new name"
			}
			matched := false
			for field, problem := range found {
				if pattern.MatchString(field) {
					matched = true
					if !strings.Contains(problem, want) {
						t.Errorf("%s: got %q, want %q", field, problem, want)
					}
				}
			}
			if !matched {
				t.Errorf("%s: no file of this test has it, or there is no warning", path)
			}
		}
	}
}

// A field without a meaning is not documented, so it must be among the removals. Fields with a meaning must not be.
func TestUndocumentedFieldsAreThoseRemoved(t *testing.T) {
	removed := make(map[string]bool)
	for _, r := range removals {
		for _, name := range strings.Fields(r.names) {
			if r.to == applies && !strings.HasPrefix(r.at, "callers.limits") && !strings.HasSuffix(r.at, "ask_again") {
				removed[strings.ReplaceAll(strings.TrimPrefix(r.at+"."+name, "."), "*", "NAME")] = true
			}
		}
	}
	for _, s := range sections {
		path := strings.Trim(s.title, "`") + "."
		if s.title == "The file" {
			path = ""
		}
		for _, r := range s.rows {
			gone := removed[path+r.name] || removed[strings.TrimSuffix(path, ".")] || path == "decide.tokens.NAME." || path == "admin_tokens.NAME." || path == "callers.claims."
			if gone == r.documented() {
				t.Errorf("%s%s: documented %v, removed %v", path, r.name, r.documented(), gone)
			}
		}
	}
}

func TestRenamedFieldKeepsItsValue(t *testing.T) {
	f := parse(t, "store: {memory: true, share: 10%}\nupstreams: {a: {url: https://h}}\n")
	if accepted(t, f); f.Store.Without.Share != 0.1 {
		t.Errorf("store.share: 10%%: got %v, want a share of 10%%", f.Store.Without)
	}
	f = parse(t, "store: {memory: true, share: 10%, without: refuse}\nupstreams: {a: {url: https://h}}\n")
	if accepted(t, f); !f.Store.Without.Refuse {
		t.Errorf("with both names: got %v, want the new name to take precedence", f.Store.Without)
	}
	if got := fmt.Sprint(f.Removed()); !strings.Contains(got, "weir.yaml:1:23: store.share: has a new name; write without") {
		t.Errorf("got %s", got)
	}
}

// otherSense are names of removed fields that pages use in another sense.
const otherSense = "added attributes by capacity central claims cut endpoint failures full grow guard high hold interval limit local longest low normal poll realtime recovery refusals " +
	"runbook series step streams success throttle timeout total trust xray"

func TestPagesNameNoRemovedField(t *testing.T) {
	known := strings.Fields(otherSense)
	for _, s := range sections {
		for _, r := range s.rows {
			if r.documented() {
				known = append(known, r.name)
			}
		}
	}
	var names []string
	for _, r := range removals {
		for _, name := range strings.Fields(r.names) {
			if !slices.Contains(known, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) < 50 {
		t.Errorf("%d names of removed fields, want at least 50", len(names))
	}
	quoted := regexp.MustCompile("`[^`\n]+`")
	removed := regexp.MustCompile(`(?:^|[^\w-])(?:` + strings.Join(names, "|") + `)(?:[^\w-]|$)`)
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		if strings.Contains(page, "/adr/") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllString(string(text), -1) {
			if removed.MatchString(m) {
				t.Errorf("%s names the removed field %s", page, m)
			}
		}
	}
}
