//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// A family is an upstream with the preset of one provider. The models are in testdata/llm_sdks.cjs.
type family struct{ name, model string }

var families = []family{
	{"openai", "gpt-4o"}, {"anthropic", "claude-3-haiku-20240307"},
	{"gemini", "gemini-2.5-flash"}, {"bedrock", "anthropic.claude-3-haiku-20240307-v1:0"},
}

// named returns a model name that only this SDK uses.
func (f family) named(name string) string {
	if f.name == "bedrock" {
		return "anthropic." + name + "-v1:0"
	}
	return f.name + "-" + name
}

// provider is a simulator of all four, in which JavaScript can inject faults. Requests to Bedrock must be signed with weir's
// key.
func provider(t *testing.T, c llmsim.Config) (*llmsim.Provider, string) {
	t.Helper()
	setKeys(t)
	v := &sigtest.Verifier{Secrets: map[string]string{"AKWEIR": "of weir"}}
	c.Control = true
	c.Verify = func(r *http.Request) error { _, err := v.Verify(r); return err }
	p := llmsim.New(c)
	s, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return p, s.URL
}

// upstreams returns the part of a file with an upstream for each family, by its preset. more has additional fields in flow
// style, in which MODEL is the family's model. The names of another set have a suffix.
func upstreams(url, set, more string) string {
	var b strings.Builder
	for _, f := range families {
		fmt.Fprintf(&b, "  %s%s: {preset: %s, url: %q%s}\n", f.name, set, f.name, url, strings.ReplaceAll(more, "MODEL", f.model))
	}
	return b.String()
}

// head is the beginning of a file.
const head = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"

// script runs a group of testdata/llm.cjs and counts its cases, so that none is missing.
func script(t *testing.T, group string, w *process, sim string, cases int) {
	t.Helper()
	modules, err := filepath.Abs("../../../.deps/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/llm.cjs", group, "http://"+w.Serve.Listen, sim)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "NODE_NO_WARNINGS=1")
	cmd.WaitDelay = patience
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), ": good"); err != nil || n != cases {
		t.Errorf("%s: %d of %d cases are good (%v)", group, n, cases, err)
	}
	t.Logf("%s", out)
}

// clean reports errors that the simulator found in its requests.
func clean(t *testing.T, p *llmsim.Provider) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Error(v)
	}
}

// With the presets, requests get answers, with and without streams, and throttles of the provider are invisible.
func TestModelsThroughTheirSDKs(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", ""))
	script(t, "through", w, sim, 6*len(families)+1)
	clean(t, p)
}

// During any failure there is an answer in the requested format with a note of its source. A truncated stream never appears
// complete.
func TestModelsThatAreDown(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	answers, err := filepath.Abs("../../../examples/chat/answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tiers := fmt.Sprintf("{name: second, model: MODEL, confidence: 80%%}, {cached: true}, {answers: %q}, {message: We are sorry.}", answers)
	once := func(more string) string { // each fault is for one attempt
		return ", retry: {attempts: 1}, llm: {cache: {ttl: 1ms, stale_while_revalidate: off}, cascade: {tiers: [" + tiers + "]" + more + "}}"
	}
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", once(""))+upstreams(sim, "-errors", once(""))+upstreams(sim, "-hasty", once(", deadline: 4s"))+
		upstreams(sim, "-brief", ", retry: {attempts: 3, base: 10ms}")+fmt.Sprintf(`
  openai-patient: {preset: openai, url: %q, llm: {cascade: {tiers: [{model: dead-too}, {message: We are sorry.}]}}}
`, sim))
	script(t, "cascade", w, sim, 8*len(families)+1)
	clean(t, p)
}

// weir gives up on a model that hangs before or after its headers, before an SDK with an unknown timeout disconnects.
func TestModelsThatHang(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", ", llm: {cascade: {tiers: [{name: second, model: MODEL}, {message: We are sorry.}]}}"))
	script(t, "patience", w, sim, 2*len(families))
	clean(t, p)
}

func TestModelsAreAskedOnce(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	// -once makes one attempt: a second one would succeed, and this test needs no cached answer.
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", ", llm: {cache: true}")+upstreams(sim, "-once", ", llm: {cache: true}, retry: {attempts: 1}"))
	script(t, "cache", w, sim, 4*len(families))
	clean(t, p)
}

func TestCallersOfModelsHaveTheirShare(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	yaml := head + `
callers:
  limits:
    user: {rate: 2/h, burst: 2, scope: user}
    tenant-day: {amount: 2, every: day, scope: tenant}
upstreams:
` + upstreams(sim, "", "")
	w := start(t, yaml)
	script(t, "callers", w, sim, 2*len(families))
	w.Reload(yaml+"drain: 20s\n", "reloaded")
	script(t, "again", w, sim, len(families))
	clean(t, p)
}

// A provider sees only weir's key for it. Metrics and status contain no key and no question.
func TestKeysAndQuestionsStayWhereTheyBelong(t *testing.T) {
	t.Setenv("FIRST_KEY", "sk-first")
	t.Setenv("OTHER_KEY", "sk-other")
	p, sim := provider(t, llmsim.Config{Keys: map[string]llmsim.Key{"sk-first": {Name: "first"}, "AKWEIR": {Name: "aws"}}})
	q, other := provider(t, llmsim.Config{Keys: map[string]llmsim.Key{"sk-other": {Name: "other"}, "AKWEIR": {Name: "aws"}}})
	var yaml strings.Builder
	yaml.WriteString(head + "upstreams:\n")
	for _, f := range families {
		first, second := "key_env: FIRST_KEY, ", "llm: {key_env: OTHER_KEY}"
		if f.name == "bedrock" {
			first, second = "", "aws: {region: us-east-1}"
		}
		// One attempt, so that the other upstream answers after any error of the first.
		fmt.Fprintf(&yaml, "  %[1]s: {preset: %[1]s, url: %[2]q, retry: {attempts: 1}, llm: {%[3]scascade: {tiers: [{name: other, upstream: %[1]s-other}]}}}\n", f.name, sim, first)
		fmt.Fprintf(&yaml, "  %[1]s-other: {preset: %[1]s, url: %[2]q, %[3]s}\n", f.name, other, second)
	}
	w := start(t, yaml.String())
	script(t, "keys", w, sim, len(families))
	clean(t, p)
	clean(t, q)
	if n := len(q.Log()); n != len(families) {
		t.Errorf("%d calls came to the second provider, want %d", n, len(families))
	}
	status, _ := say(t, "status", "-json", "-admin", w.Serve.Admin)
	for what, text := range map[string]string{"status": status, "metrics": page(t, "http://"+w.Serve.Admin+"/metrics")} {
		if !strings.Contains(text, "anthropic-other") {
			t.Errorf("%s: %s", what, text)
		}
		for _, secret := range []string{"sk-", "secret", "AKWEIR"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells %q: %s", what, secret, text)
			}
		}
	}
}

// page returns the body at an address.
func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(text)
}

// Refusals by weir and errors of the provider become the corresponding errors of each SDK.
func TestRefusalsInTheWordsOfTheSDKs(t *testing.T) {
	models := make(map[string]llmsim.Model)
	for _, f := range families {
		models[f.model] = llmsim.Model{}
		for _, name := range []string{"limited", "circuit"} {
			models[f.named(name)] = llmsim.Model{}
		}
	}
	_, sim := provider(t, llmsim.Config{Models: models})
	// -tight and -frail refuse after one call. The test checks the format of the refusals.
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", "")+
		upstreams(sim, "-tight", ", limits: {mine: {rate: 1/min, burst: 1, scope: model}}, max_wait: off")+
		upstreams(sim, "-frail", ", retry: {attempts: 1}, breaker: {consecutive: 1, open: 1h, scope: model}"))
	script(t, "refusals", w, sim, 5*len(families))
}

func TestStrangeAnswersAndCallersWhoLeave(t *testing.T) {
	p, sim := provider(t, llmsim.Config{})
	w := start(t, head+"upstreams:\n"+upstreams(sim, "", "")+upstreams(sim, "-short", ", llm: {total: 500ms}")+
		upstreams(sim, "-tokens", ", limits: {mine: {rate: 100000/s, burst: 100000, unit: tokens, scope: model}}")+
		upstreams(sim, "-small", ", limits: {mine: {rate: 1000/s, burst: 1000, unit: tokens, scope: model}}"))
	script(t, "strange", w, sim, 6*len(families))
	clean(t, p)
}

// Sixty callers with one attempt each are all answered, at 20/s with a burst of 3. A provider with the same rate refuses
// nothing. Its burst is larger, because calls that weir sends 50 ms apart may arrive together on a machine that stalls for two
// seconds. It is below sixty.
func TestSixtyCallersOfOneModel(t *testing.T) {
	p, sim := provider(t, llmsim.Config{Default: llmsim.Model{Limits: llmsim.Limits{Requests: llmsim.Rate{N: 20, Per: time.Second, Burst: 45}}}})
	w := start(t, head+fmt.Sprintf("upstreams:\n  openai: {preset: openai, url: %q, limits: {rpm: off, mine: {rate: 20/s, burst: 3}}}\n", sim))
	script(t, "crowd", w, sim, 1)
	clean(t, p)
}

// An error in a referenced file is reported with its position, and weir does not start.
func TestPricesAndAnswersWithATypo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	for name, text := range map[string]string{
		"weir.yaml":    head + "prices: prices.yaml\nupstreams:\n  openai: {preset: openai, llm: {cascade: {tiers: [{answers: answers.yaml}]}}}\n",
		"prices.yaml":  "models:\n  gpt-4o: {input: 2.5, output: 10}\n  my-own:\n    inptu: 1\n    output: two\n",
		"answers.yaml": "answers:\n  - id: hours\n    keywords: [open]\n    anwser: {en: Always.}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(wants []string, args ...string) {
		out, code := say(t, args...)
		for _, want := range wants {
			if code != 1 || !strings.Contains(out, want) {
				t.Errorf("%v: status %d and %q, want %q", args, code, out, want)
			}
		}
	}
	prices := []string{"prices.yaml:4:5: models.my-own.inptu: unknown field \"inptu\"; did you mean input?", "prices.yaml:5:13: models.my-own.output: two is not a price"}
	says(prices, "serve", "-config", file)
	says(append(prices, "answers.yaml:4:5: answers[0].anwser: unknown field"), "check", file)
}
