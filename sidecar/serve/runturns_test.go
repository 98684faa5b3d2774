package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A run whose calls wait for a limit or a slot delays the call of another run by few calls, whichever limit they wait for. Without
// names of runs, or with fair: off, calls go by arrival.
func TestRunsTakeTurns(t *testing.T) {
	const (
		run    = `keys: {run: "header:X-Agent-Run"}`
		slow   = "{rate: 10/s, burst: 1}"
		ask    = `{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":"Is it?"}]}`
		always = "max_wait: 30s, "
	)
	for _, c := range []struct {
		name, callers, upstream, body string
		calls                         int
		inTurn                        bool
	}{
		{"plain", "off", always + run + ", limits: {all: " + slow + "}", "{}", 50, true},
		{"slots", "off", always + run + ", concurrency: 1", "{}", 8, true},
		{"tools", "off", always + "preset: mcp, " + run + ", limits: {all: " + slow + "}", call("1", "search"), 50, true},
		{"model", "{" + run + ", limits: {user: off}}", always + "preset: anthropic, limits: {rpm: " + slow + "}", ask, 50, true},
		{"callers", "{" + run + ", max_wait: 30s, limits: {user: off, global: " + slow + "}}", "callers: true", "{}", 50, true},
		{"off", "off", always + run + ", fair: off, limits: {all: " + slow + "}", "{}", 50, false},
		{"unnamed", "off", always + "limits: {all: " + slow + "}", "{}", 50, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if c.name == "slots" {
						time.Sleep(100 * time.Millisecond)
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"type":"message","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":5,"output_tokens":5}}`)
				}))
				defer serveInside(t, n, fmt.Sprintf("callers: %s\nupstreams: {api: {url: %q, %s}}\n", c.callers, up, c.upstream))()
				client := &http.Client{Transport: n.Transport()}
				defer client.CloseIdleConnections()
				send := func(run string) time.Duration {
					begin := time.Now()
					r, _ := http.NewRequest("POST", "http://localhost/api/v1/messages", strings.NewReader(c.body))
					r.Header = http.Header{"X-Agent-Run": {run}, "Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"k"}}
					resp, err := client.Do(r)
					if err != nil {
						t.Error(err)
						return 0
					}
					defer resp.Body.Close()
					if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
						t.Errorf("run %s: %d %s", run, resp.StatusCode, text)
					}
					return time.Since(begin)
				}
				var all sync.WaitGroup
				for range c.calls {
					all.Go(func() { send("large") })
				}
				time.Sleep(150 * time.Millisecond)
				took := send("small")
				all.Wait()
				if inTurn := took < 400*time.Millisecond; inTurn != c.inTurn {
					t.Errorf("the call of the small run took %v behind %d calls of the large one", took, c.calls)
				}
			})
		})
	}
}
