//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A fleetRun is one run whose calls go through two processes with Redis to three upstreams: a model, an MCP server and a
// plain API. A response of the model has 1,000 tokens of input and 500 of output, which cost 0.0105 dollars.
type fleetRun struct {
	t       *testing.T
	members [2]*member
	came    [3]atomic.Int64 // requests that reached the model, the MCP server and the plain API
}

func newFleetRun(t *testing.T, limits, toolLimits string) *fleetRun {
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	f := &fleetRun{t: t}
	up := httptest.NewServer(f)
	t.Cleanup(up.Close)
	for i := range f.members {
		f.members[i] = enlistFile(t, fmt.Sprintf(`
store: {redis: %[1]q}
callers:
  keys: {run: "header:X-Agent-Run"}
  max_wait: 30s
  limits: {global: off, user: off, user-day: off, %[3]s}
upstreams:
  model: {preset: anthropic, url: %[2]q, concurrency: off, breaker: off, limits: {rpm: off, itpm: off, otpm: off}}
  tools: {preset: mcp, url: %[2]q, concurrency: off, breaker: off, callers: true, keys: {run: "header:X-Agent-Run"}, limits: {%[4]s}}
  plain: {url: %[2]q, concurrency: off, breaker: off, callers: true}
`, redis.URL(), up.URL, limits, toolLimits))
	}
	return f
}

func (f *fleetRun) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		f.came[0].Add(1)
		fmt.Fprint(w, `{"type":"message","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":1000,"output_tokens":500}}`)
	case strings.Contains(string(body), "tools/call"):
		f.came[1].Add(1)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	default:
		f.came[2].Add(1)
	}
}

// call makes a call of a run to one of the upstreams through a member, and returns whether it was served, and the response.
func (f *fleetRun) call(member, upstream int, run, tool string) (served bool, text string) {
	path, body := "/plain/", "{}"
	switch upstream {
	case 0:
		path, body = "/model/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":500,"messages":[{"role":"user","content":"`+strings.Repeat("Is it? ", 450)+`"}]}`
	case 1:
		path, body = "/tools/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`
	}
	r, err := http.NewRequest("POST", "http://"+f.members[member].listen+path, strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return false, ""
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Agent-Run": {run}, "X-Api-Key": {"k"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Error(err)
		return false, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode == http.StatusOK && !strings.Contains(string(b), `"isError":true`), string(b)
}

// burst makes 1,000 calls through both processes, in long tests all at the same time, and returns how many were served, by run and upstream or
// tool. The responses to refused calls must contain one of the texts.
func (f *fleetRun) burst(runs, tools []string, texts ...string) map[string]int {
	var all sync.WaitGroup
	var mu sync.Mutex
	served := make(map[string]int)
	places := make(chan struct{}, campaign.Of(100, 1000)) // so many at once are slow on a busy machine
	for i := range 1000 {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			run, upstream, tool := runs[i/6%len(runs)], i%3, tools[i/12%len(tools)]
			ok, text := f.call(i%2, upstream, run, tool)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				served[run+" "+[]string{"model", tool, "plain"}[upstream]]++
			} else if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(text, s) }) {
				f.t.Errorf("refused with %s", text)
			}
		})
	}
	all.Wait()
	return served
}

// spent returns the dollars that a run has spent, as both processes report them.
func (f *fleetRun) spent(run string) (usd [2]float64) {
	for i, m := range f.members {
		var all status.Of
		resp, err := http.Get("http://" + m.admin + "/v1/limits?run=" + run)
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&all)
			_ = resp.Body.Close()
		}
		if err != nil {
			f.t.Fatal(err)
		}
		for _, l := range all.Upstreams[0].Limits {
			if l.USD != nil {
				usd[i] = l.USD.Spent
			}
		}
	}
	return usd
}

// A run makes 1,000 calls, many at the same time, to three upstreams through two processes. It uses exactly its budget of calls, and
// its budgets of tokens and dollars except for less than a call may need. Each process keeps tokens for an outage of the store.
// On a busy machine, grants arrive too late to use, and count as used.
// When it is idle, the other one gets them.
func TestFleetKeepsBudgetOfRun(t *testing.T) {
	raced.Skip(t, "thousands of simultaneous calls are slow, and other tests run the same code")
	t.Parallel()
	for _, c := range []struct {
		unit, limits string
		least, most  int // served calls that are charged
	}{
		{"calls", "run-calls: {rate: 300/24h, shape: rolling, scope: run}", 300, 300},
		{"tokens", "run-tokens: {rate: 150000/24h, shape: rolling, unit: tokens, scope: run}", 98, 100},
		{"dollars", "run-money: {amount: 1.05, window: 24h, unit: usd, scope: run, hold: most}", 99, 100},
	} {
		t.Run(c.unit, func(t *testing.T) {
			t.Parallel()
			f := newFleetRun(t, c.limits, "")
			served := f.burst([]string{"r1"}, []string{"search"}, "by limit run-", "This run: 300 of 300 calls in 24 hours used; no more until ")
			if c.unit == "tokens" {
				for i := 0; i < 100 && served["r1 model"] < c.least; i++ { // tokens that were held by calls in flight
					if ok, _ := f.call(i%2, 0, "r1", ""); ok {
						served["r1 model"]++
					}
				}
			}
			for i := range 4 {
				if ok, _ := f.call(i%2, 0, "r1", ""); ok {
					served["r1 model"]++
				}
			}
			charged, others := served["r1 model"], served["r1 search"]+served["r1 plain"]
			if c.unit == "calls" {
				charged, others = charged+others, 333+333
			}
			if charged < c.least*3/4 || charged > c.most || others != 333+333 {
				t.Errorf("served %v, want %d to %d that are charged, and all others", served, c.least, c.most)
			}
			if came := [3]int{int(f.came[0].Load()), int(f.came[1].Load()), int(f.came[2].Load())}; came != [3]int{served["r1 model"], served["r1 search"], served["r1 plain"]} {
				t.Errorf("%d calls reached the upstreams, and %v were served", came, served)
			}
			if c.unit != "dollars" {
				return
			}
			for _, got := range f.spent("r1") { // with holds, as of the latest request to the store
				if want := float64(105*charged) / 1e4; got < want || got > 1.05 {
					t.Errorf("reported as spent: %v, want %v", got, want)
				}
			}
		})
	}
}

// usesUp reports whether no limit was exceeded, and each was used up, except for units whose grant arrived too late to use: on a
// machine that does nothing else, all are used.
func usesUp(got, want map[string]int) bool {
	for name, n := range want {
		if got[name] > n || got[name] < n*3/4 {
			return false
		}
	}
	return len(got) == len(want)
}

// Limits by two scopes count each combination once in two processes.
func TestFleetKeepsLimitsOfPairs(t *testing.T) {
	raced.Skip(t, "thousands of simultaneous calls are slow, and other tests run the same code")
	t.Parallel()
	runs, tools := []string{"r1", "r2"}, []string{"search", "fetch"}
	t.Run("callers", func(t *testing.T) {
		t.Parallel()
		f := newFleetRun(t, "pair: {rate: 50/24h, shape: rolling, scope: [route, run]}", "")
		got := f.burst(runs, tools[:1], "by limit pair (50 in any 24h0m0s) for route=", "This run: 50 of 50 calls in 24 hours used; no more until ")
		want := map[string]int{"r1 model": 50, "r2 model": 50, "r1 plain": 50, "r2 plain": 50, "r1 search": 50, "r2 search": 50}
		if !usesUp(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
	t.Run("upstream", func(t *testing.T) {
		t.Parallel()
		f := newFleetRun(t, "", "pair: {rate: 20/24h, shape: rolling, scope: [run, tool]}")
		got := f.burst(runs, tools, " of this run: 20 of 20 calls in 24 hours used; no more until ")
		want := map[string]int{"r1 search": 20, "r1 fetch": 20, "r2 search": 20, "r2 fetch": 20}
		for _, run := range runs {
			delete(got, run+" model")
			delete(got, run+" plain")
		}
		if !usesUp(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
}
