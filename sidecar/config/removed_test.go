package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// everyRemoved has every field that is removed or renamed and that everyField does not have.
const everyRemoved = `
store: {memory: true, coast: 30s}
traces: {url: "http://127.0.0.1:4318", central: true, jaeger: "http://127.0.0.1:16686"}
upstreams:
  a:
    url: https://h
    routes: [{path: /e/, websocket: true}]
    websocket: {realtime: true}
`

// removedIn returns the fields of a file that are removed or renamed, by path.
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
	for _, r := range removals {
		path := strings.NewReplacer(".", `\.`, "*", `[^.]+`, "[]", `\[\d+\]`).Replace(r.path)
		pattern := regexp.MustCompile("^" + path + "$")
		want := map[string]string{applies: "applies until then", ignored: "no effect"}[r.to]
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
			t.Errorf("%s: no warning in %v", r.path, found)
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
