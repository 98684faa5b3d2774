package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// A givingTrial is a sidecar whose callers have budgets of dollars. Each call of a model costs 10,500 millionths of a dollar.
type givingTrial struct{ *runsTrial }

func startGiving(t *testing.T, top, limits string, env func(string) (string, bool)) *givingTrial {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"type":"message","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":1000,"output_tokens":500}}`)
	}))
	t.Cleanup(api.Close)
	p := &pairing{t: t, file: filepath.Join(t.TempDir(), "weir.yaml")}
	put(t, p.file, fmt.Sprintf(`{listen: "127.0.0.1:0", admin: "127.0.0.1:0", %s
callers: {keys: {run: "header:X-Agent-Run"}, limits: {global: off, user: off, user-day: off, %s}},
upstreams: {claude: {preset: anthropic, url: %q}}}
`, top, limits, api.URL))
	p.sidecar = startWith(t, p.file, env)
	return &givingTrial{&runsTrial{p}}
}

// spend calls a model until weir refuses, and returns how many calls were served.
func (g *givingTrial) spend(run string) (n int) {
	g.t.Helper()
	for ; n < 100; n++ {
		if g.send(run, "/claude/v1/messages", askModel("claude-sonnet-4-5")) != http.StatusOK {
			return n
		}
	}
	g.t.Fatal("the budget never ends")
	return n
}

// give gives dollars back, and returns the response.
func (g *givingTrial) give(o status.Giving, token string) (status int, given status.Given, text string) {
	g.t.Helper()
	body, _ := json.Marshal(o)
	r, _ := http.NewRequest("POST", "http://"+g.admin.Addr().String()+"/v1/budget", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	_ = json.Unmarshal(b, &given)
	return resp.StatusCode, given, string(b)
}

// An operator gives dollars of a spent budget back. The caller can then spend these, and no more. At most what was spent
// returns, so the remainder never exceeds the budget. Other keys are unchanged. The log has the sender, the amount and the
// reason.
func TestOperatorGivesDollarsBack(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{
		"calendar": "money: {amount: 0.10, every: day, unit: usd, scope: run}",
		"rolling":  "money: {amount: 0.10, window: 24h, unit: usd, scope: run}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGiving(t, "", limits, noEnv)
			g.send("r2", "/claude/v1/messages", askModel("claude-sonnet-4-5"))
			first := g.spend("r1")
			code, given, text := g.give(status.Giving{Key: "r1", USD: "0.042", Reason: "mispriced\nmodel"}, "")
			left := 100_000 - int64(first)*10_500 + 42_000
			if code != http.StatusOK || given.USD != 0.042 || given.Upstream != "callers" || given.Limit.Name != "money" || given.Limit.Left != left {
				t.Fatalf("after %d calls: %d %s, want %d left", first, code, text, left)
			}
			if n := g.spend("r1"); n != 4 {
				t.Errorf("%d calls were served afterwards, want 4", n)
			}
			code, given, text = g.give(status.Giving{Upstream: "callers", Limit: "money", Key: "r1", USD: "50", Reason: "all"}, "")
			if code != http.StatusOK || given.USD != float64(first*10_500)/1e6 || given.Limit.Left != 100_000 || given.Limit.Full != 100_000 {
				t.Errorf("more than was spent: %d %s", code, text)
			}
			if _, given, _ = g.give(status.Giving{Key: "r1", USD: "1", Reason: "again"}, ""); given.USD != 0 || given.Limit.Left != 100_000 {
				t.Errorf("nothing was spent: %+v", given)
			}
			if text := g.adminPage("/v1/limits?run=r2"); !strings.Contains(text, `"left":89500`) {
				t.Errorf("another key: %s", text)
			}
			line := g.log.waitFor(t, "operator action")
			for name, want := range map[string]string{"do": "give", "upstream": "callers", "limit": "money", "key": "r1", "usd": "0.042", "asked": "0.042", "why": "mispriced?model", "by": "127.0.0.1:"} {
				if got, _ := line[name].(string); !strings.HasPrefix(got, want) {
					t.Errorf("the log has %s %q, want %q", name, got, want)
				}
			}
		})
	}
}

// Only senders with access to the admin listener can give dollars back. The log names the token.
func TestGivingDollarsBackNeedsAdminAccess(t *testing.T) {
	t.Parallel()
	const secret = "CORRECTHORSEBATTERYSTAPLECORRECTHORSE"
	g := startGiving(t, "tokens: {ops: {env: OPS, admin: true}},", "money: {amount: 0.10, every: day, unit: usd}", func(name string) (string, bool) { return secret, name == "OPS" })
	o := status.Giving{USD: "1", Reason: "because"}
	for _, token := range []string{"", "wrong"} {
		if code, _, text := g.give(o, token); code != http.StatusUnauthorized {
			t.Errorf("token %q: %d %s", token, code, text)
		}
	}
	if code, _, text := g.give(o, secret); code != http.StatusOK {
		t.Errorf("with a token: %d %s", code, text)
	}
	if line := g.log.waitFor(t, "operator action"); line["by"] != "ops" || line["why"] != "because" {
		t.Errorf("the log has %v", line)
	}
}

func TestBadOrdersToGiveDollarsBack(t *testing.T) {
	t.Parallel()
	g := startGiving(t, "", "money: {amount: 1, every: day, unit: usd, scope: run}, week: {amount: 1, window: 168h, unit: usd, scope: run}, all: {amount: 9, every: day, unit: usd}, calls: {rate: 9/h, shape: rolling, scope: run}", noEnv)
	g.send("r1", "/claude/v1/messages", askModel("claude-sonnet-4-5"))
	ok := status.Giving{Limit: "money", Key: "r1", USD: "1", Reason: "x"}
	for _, c := range []struct {
		change func(*status.Giving)
		says   string
	}{
		{func(o *status.Giving) { o.Reason = " " }, "reason: want up to 200 characters"},
		{func(o *status.Giving) { o.Reason = strings.Repeat("é", 201) }, "reason: want up to 200 characters"},
		{func(o *status.Giving) { o.USD = "0" }, `usd \"0\": want an amount of dollars above 0`},
		{func(o *status.Giving) { o.USD = "-1" }, `usd \"-1\": want an amount`},
		{func(o *status.Giving) { o.USD = "1e3" }, `usd \"1e3\": want an amount`},
		{func(o *status.Giving) { o.USD = "9999999999" }, "want an amount"},
		{func(o *status.Giving) { o.Limit = "" }, "several budgets fit: name the limit: callers/money, callers/week"},
		{func(o *status.Giving) { o.Key = "r9" }, `no call with key \"r9\" is known`},
		{func(o *status.Giving) { o.Key, o.Limit = "r9", "" }, `key \"r9\": no call with this key is known to callers/money, callers/week`},
		{func(o *status.Giving) { o.Key = "" }, "it has a scope: name the key"},
		{func(o *status.Giving) { o.Limit = "all" }, "it has no scope: leave the key out"},
		{func(o *status.Giving) { o.Limit = "calls" }, "counts requests, and only units of limits in dollars"},
		{func(o *status.Giving) { o.Limit = "none" }, `limit \"none\": no such limit`},
		{func(o *status.Giving) { o.Upstream = "none" }, `unknown upstream \"none\"`},
	} {
		o := ok
		c.change(&o)
		if code, _, text := g.give(o, ""); code != http.StatusBadRequest || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %d %s, want %s", o, code, text, c.says)
		}
	}
	if text := g.adminPage("/v1/limits?run=r1"); strings.Count(text, `"left":989500`) != 2 {
		t.Errorf("the budgets changed: %s", text)
	}
}
