//go:build unix

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// patience bounds every wait for a process.
const patience = served.Patience

type process = served.Process

// start runs weir serve with a configuration and waits until it serves.
func start(t testing.TB, yaml string) *process {
	t.Helper()
	return served.Start(t, yaml)
}

// say runs a command of weir to its end.
func say(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	return served.Say(t, nil, args...)
}

// rule returns a limit as weir status shows it.
func rule(t testing.TB, w *process, limit string) string {
	t.Helper()
	out, code := say(t, "status", "-json", "-admin", w.Serve.Admin)
	var r status.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("weir status: %v in %s", err, out)
	}
	for _, l := range r.Upstreams[0].Limits {
		if l.Name == limit {
			return l.Rule
		}
	}
	return ""
}

// yaml returns a configuration for a store.
func (s *store) yaml(put string) string {
	return strings.NewReplacer("URL", s.url, "PUT", put).Replace(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
drain: 20s
upstreams:
  s3:
    url: URL
    preset: s3
    routes: [{path: /}]
    limits:
      put: PUT
`)
}
