package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// runsFile has the address of the played APIs. It limits the calls of a run and of each tool.
const runsFile = `{listen: "127.0.0.1:0", admin: "127.0.0.1:0",
callers: {keys: {run: "header:X-Agent-Run", step: "query:step"}, limits: {global: off, user: off, user-day: off,
  run-calls: {rate: 8/24h, shape: rolling, scope: run}, run-step: {rate: 6/24h, shape: rolling, scope: [run, step]}}},
upstreams: {
  tools: {preset: mcp, url: %[1]q, callers: true, limits: {each: {rate: 2/h, shape: rolling, scope: [run, tool]}}, keys: {run: "header:X-Agent-Run"}},
  claude: {preset: anthropic, url: %[1]q},
  plain: {url: %[1]q, callers: true}}}
`

// A runsTrial is a sidecar that counts runs.
type runsTrial struct {
	*pairing
}

func startRuns(t *testing.T) *runsTrial {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/messages") {
			b, _ := io.ReadAll(r.Body)
			model := "claude-sonnet-4-5"
			if strings.Contains(string(b), "unknown") {
				model = "unknown-model"
			}
			fmt.Fprintf(w, `{"type":"message","model":%q,"content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":1000,"output_tokens":500}}`, model)
			return
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	}))
	t.Cleanup(api.Close)
	p := &pairing{t: t, file: filepath.Join(t.TempDir(), "weir.yaml")}
	put(t, p.file, fmt.Sprintf(runsFile, api.URL))
	p.sidecar = startWith(t, p.file, noEnv)
	return &runsTrial{p}
}

// send sends a request of a run, and returns the status.
func (p *runsTrial) send(run, path, body string) int {
	p.t.Helper()
	r, _ := http.NewRequest("POST", "http://"+p.address()+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	if run != "" {
		r.Header.Set("X-Agent-Run", run)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// runs returns the response to a request for runs.
func (p *runsTrial) runs(query string) (all status.Runs, text string) {
	p.t.Helper()
	text = p.adminPage("/v1/runs" + query)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		p.t.Fatal(err, text)
	}
	return all, text
}

func askModel(model string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":500,"messages":[{"role":"user","content":"Is it?"}]}`, model)
}

// The view of a run has its calls of all upstreams, its tokens and dollars, its tools, and its refusals by the limits of
// callers and of the upstream. Free requests are not counted.
func TestRunsReportWhatEachRunUsed(t *testing.T) {
	t.Parallel()
	p := startRuns(t)
	p.send("r1", "/tools/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for range 3 {
		p.send("r1", "/tools/mcp", call("1", "search"))
	}
	p.send("r1", "/tools/mcp", call("1", "fetch"))
	for _, model := range []string{"claude-sonnet-4-5", "claude-sonnet-4-5", "unknown-model"} {
		if got := p.send("r1", "/claude/v1/messages", askModel(model)); got != http.StatusOK {
			t.Fatalf("a call of %s got %d", model, got)
		}
	}
	for i := range 4 {
		if got := p.send("r1", "/plain/?step=plan", "{}"); (got == http.StatusOK) != (i < 2) {
			t.Errorf("plain call %d got %d", i, got)
		}
	}
	p.send("", "/plain/", "{}")
	all, text := p.runs("")
	if len(all.Runs) != 2 || all.Dropped != 0 || all.Runs[0].Name != "" || all.Runs[0].Calls != 1 {
		t.Fatalf("got %s", text)
	}
	r := all.Runs[1]
	if r.Name != "r1" || r.Calls != 8 || r.Tokens != 4500 || r.USD != 0.021 || r.Unpriced != 1 || r.Refused != 3 ||
		!reflect.DeepEqual(r.Tools, map[string]int64{"search": 2, "fetch": 1}) || !reflect.DeepEqual(r.RefusedBy, map[string]int64{"each": 1, "run-calls": 2}) {
		t.Errorf("got %s", text)
	}
	if r.First.IsZero() || r.Last.Before(r.First) || len(r.Upstreams) != 1 || len(r.Upstreams[0].Limits) != 1 || r.Upstreams[0].Limits[0].Left != 0 {
		t.Errorf("got %s", text)
	}
	one, _ := p.runs("?name=r1")
	var keys []string
	for _, u := range one.Runs[0].Upstreams {
		for _, l := range u.Limits {
			keys = append(keys, fmt.Sprintf("%s %s %d/%d", l.Name, l.Key, l.Left, l.Full))
		}
	}
	want := []string{"run-calls r1 0/8", `run-step run=r1, step=plan 4/6`, `run-step run=r1, step="" 0/6`, "each run=r1, tool=search 0/2", "each run=r1, tool=fetch 1/2"}
	for _, w := range want {
		if !strings.Contains(strings.Join(keys, "; "), w) {
			t.Errorf("one run has the limits %q, want %q", keys, w)
		}
	}
	if _, text = p.runs("?name=r2"); !strings.Contains(text, `no call of run \"r2\" is known`) {
		t.Errorf("an unknown run: %s", text)
	}
	if _, text = p.runs("?run=r1"); !strings.Contains(text, "run: unknown parameter; want name") {
		t.Errorf("an unknown parameter: %s", text)
	}
	page := p.adminPage("/")
	for _, want := range []string{"Latest runs", "search 2, fetch 1", "0.021 and 1 unpriced"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q: %s", want, page)
		}
	}
}

// Names of runs and tools come from clients. The view bounds them, and shows neither credentials of a known form nor control
// characters.
func TestRunsCleanNames(t *testing.T) {
	t.Parallel()
	p := startRuns(t)
	const secret = "sk-ant-REDACTED"
	p.send(secret, "/plain/", "{}")
	p.send(strings.Repeat("n", 2000), "/plain/", "{}")
	p.send("tool", "/tools/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"red \u001b[31m\nline","arguments":{}}}`)
	p.send("tool", "/tools/mcp", call("1", "key "+secret))
	all, text := p.runs("")
	one, more := p.runs("?name=tool")
	for _, s := range []string{text, more, p.adminPage("/")} {
		if strings.Contains(s, secret) || strings.Contains(s, `\u001b`) || strings.Contains(s, "\x1b") {
			t.Errorf("got %s", s)
		}
	}
	if len(all.Runs) != 3 || all.Runs[2].Name != "sk-***" || len(all.Runs[1].Name) > 256 || one.Runs[0].Tools["red ?[31m?line"] != 1 {
		t.Errorf("got %s", text)
	}
}
