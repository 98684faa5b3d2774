package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// A pairing is a sidecar whose callers have a limit by two scopes, in front of two APIs.
type pairing struct {
	*sidecar
	t    *testing.T
	file string
	apis [2]*httptest.Server
	seen atomic.Int64 // requests that reached an API
}

// pairFile has the top of the file, the addresses of both APIs, and the scope.
const pairFile = `{listen: "127.0.0.1:0", admin: "127.0.0.1:0", %s
callers: {keys: {run: "header:X-Agent-Run", tool: "query:tool"}, limits: {global: off, user: off, user-day: off, pair: {rate: 20/24h, shape: rolling, scope: %s, labels: true}}},
upstreams: {a: {url: %q, callers: true}, b: {url: %q, callers: true}}}
`

func startPairing(t *testing.T, top string, env func(string) (string, bool)) *pairing {
	t.Helper()
	p := &pairing{t: t, file: filepath.Join(t.TempDir(), "weir.yaml")}
	for i := range p.apis {
		p.apis[i] = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.seen.Add(1) }))
		t.Cleanup(p.apis[i].Close)
	}
	p.write(top, "[run, tool]")
	p.sidecar = startWith(t, p.file, env)
	return p
}

func (p *pairing) write(top, scope string) {
	put(p.t, p.file, fmt.Sprintf(pairFile, top, scope, p.apis[0].URL, p.apis[1].URL))
}

// call sends a request of a run for a tool to an API, and returns status and body.
func (p *pairing) call(api, run, tool string) (int, string) {
	r, _ := http.NewRequest("GET", "http://"+p.address()+"/"+api+"/?tool="+tool, nil)
	r.Header.Set("X-Agent-Run", run)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// admitted makes 200 calls at the same time, 50 for each of four pairs, to both APIs. It returns how many of each pair
// were served, and the text of a refusal.
func (p *pairing) admitted() (each map[string]int, refusal string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	each = make(map[string]int)
	for i := range 200 {
		all.Go(func() {
			run, tool, api := []string{"r1", "r2"}[i%2], []string{"search", "fetch"}[i/2%2], []string{"a", "b"}[i/4%2]
			status, body := p.call(api, run, tool)
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusOK {
				each[run+" "+tool]++
			} else if run == "r1" && tool == "search" {
				refusal = body
			}
		})
	}
	all.Wait()
	return each, refusal
}

// admin returns the body of a page of the admin listener.
func (p *pairing) adminPage(path string) string {
	resp, err := http.Get("http://" + p.admin.Addr().String() + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// A limit with two scopes counts each combination of their values separately, over all upstreams. A reload that reverses
// the scopes keeps the usage. A reload with another scope counts its combinations, which start used up.
func TestPairLimitCountsEachCombination(t *testing.T) {
	t.Parallel()
	p := startPairing(t, "harmless: [run, tool],", noEnv)
	each, refusal := p.admitted()
	for _, pair := range []string{"r1 search", "r1 fetch", "r2 search", "r2 fetch"} {
		if each[pair] != 20 {
			t.Errorf("%s: %d calls were served, want 20", pair, each[pair])
		}
	}
	if p.seen.Load() != 80 {
		t.Errorf("%d calls reached the APIs, want 80", p.seen.Load())
	}
	if want := "by limit pair (20 in any 24h0m0s) for run=r1, tool=search: retry after"; !strings.Contains(refusal, want) {
		t.Errorf("the refusal is %s, want %q in it", refusal, want)
	}
	var of status.Of
	text := p.adminPage("/v1/limits?tool=search&run=r1")
	if err := json.Unmarshal([]byte(text), &of); err != nil || len(of.Upstreams) != 1 || len(of.Upstreams[0].Limits) != 1 {
		t.Fatalf("/v1/limits answers %s, %v", text, err)
	}
	if l := of.Upstreams[0].Limits[0]; l.Name != "pair" || l.Key != "run=r1, tool=search" || l.Left != 0 || l.Full != 20 {
		t.Errorf("/v1/limits reports %+v", l)
	}
	if of = (status.Of{}); json.Unmarshal([]byte(p.adminPage("/v1/limits?run=r1")), &of) != nil || len(of.Upstreams) != 1 || len(of.Upstreams[0].Limits) != 2 {
		t.Errorf("/v1/limits of one run: %+v, want its two pairs", of)
	}
	for _, l := range of.Upstreams[0].Limits {
		if l.Name != "pair" || !strings.HasPrefix(l.Key, "run=r1, tool=") || l.Left != 0 {
			t.Errorf("/v1/limits of one run reports %+v", l)
		}
	}
	for path, want := range map[string]string{
		"/v1/status": `"key":"run=r2, tool=fetch"`,
		"/metrics":   `weir_limit_key_used_ratio{key="run=r1, tool=search",limit="pair",upstream="callers"} 1`,
	} {
		if text := p.adminPage(path); !strings.Contains(strings.ReplaceAll(text, `": "`, `":"`), want) {
			t.Errorf("%s has no %s: %s", path, want, text)
		}
	}

	for _, reload := range []struct{ scope, pair string }{{"[tool, run]", "run=r1, tool=search"}, {"[run, plan]", `plan=\"\", run=r1`}} {
		p.write("harmless: [run, tool],", reload.scope)
		p.reload <- syscall.SIGHUP
		p.log.waitFor(t, "reloaded")
		if got, text := p.call("a", "r1", "search"); got != http.StatusTooManyRequests || !strings.Contains(text, " for "+reload.pair+": ") {
			t.Errorf("after a reload with scope %s: %d %s", reload.scope, got, text)
		}
	}
	if got, text := p.call("a", "r3", "search"); got != http.StatusTooManyRequests || !strings.Contains(text, "run=r3") {
		t.Errorf("another pair after the reload, which starts used up: %d %s", got, text)
	}
}

// With a secret, all pages, metrics and refusals show hashes of both values. An operator can name the pair by its values
// or by the hashes.
func TestPairOfHashedValues(t *testing.T) {
	t.Parallel()
	p := startPairing(t, "hash_env: HASH,", func(name string) (string, bool) { return "CORRECTHORSEBATTERYSTAPLECORRECTHORSE", name == "HASH" })
	if status, text := p.call("a", "r1", "search"); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for path, want := range map[string]string{"/v1/status": `run=hmac:`, "/metrics": `key="run=hmac:`, "/v1/limits?run=r1&tool=search": `"left":19`} {
		text := strings.ReplaceAll(p.adminPage(path), `": `, `":`)
		if !strings.Contains(text, want) || strings.Contains(text, "run=r1,") || strings.Contains(text, "tool=search") {
			t.Errorf("%s shows the pair as %s", path, text)
		}
	}
	pause := func(key string) (int, string) {
		body, _ := json.Marshal(map[string]string{"upstream": "callers", "do": "pause", "limit": "pair", "key": key})
		resp, err := http.Post("http://"+p.admin.Addr().String()+"/v1/pause", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if status, text := pause("r1"); status != http.StatusBadRequest || !strings.Contains(text, `want a key such as \"run=a, tool=b\"`) {
		t.Errorf("a pause of one value: %d %s", status, text)
	}
	if status, text := pause("run=r1, tool=search"); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if status, text := p.call("a", "r1", "search"); status == http.StatusOK || strings.Contains(text, "r1") {
		t.Errorf("a call of the paused pair: %d %s", status, text)
	}
	if status, text := p.call("b", "r1", "fetch"); status != http.StatusOK {
		t.Errorf("a call of another pair: %d %s", status, text)
	}
}
