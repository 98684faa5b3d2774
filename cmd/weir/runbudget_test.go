//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/playedhosts"
)

// A budgetedRun runs weir run with a budget, several times on one machine.
type budgetedRun struct {
	t     *testing.T
	env   []string
	calls atomic.Int64 // that reached an upstream
}

// newBudgetedRun plays upstreams that answer every call. An answer of a model costs 0.0105 dollars.
func newBudgetedRun(t *testing.T) *budgetedRun {
	t.Helper()
	needs(t, "curl")
	b := &budgetedRun{t: t}
	hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.calls.Add(1)
		if r.Header.Get("X-Agent-Run") != "" {
			t.Error("the name of the run reached the upstream")
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"type":"message","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":1000,"output_tokens":500}}`)
	}))
	b.env = append(hosts.Env(), asWeir+"=1", "XDG_RUNTIME_DIR="+runtimeDir(t))
	return b
}

// run runs a script of the shell, in which $0 is weir.
func (b *budgetedRun) run(script string, flags ...string) (out, errs string) {
	b.t.Helper()
	c := exec.Command(os.Args[0], append(append([]string{"run"}, flags...), "--", "sh", "-c", script, os.Args[0])...)
	var o, e strings.Builder
	c.Env, c.Stdout, c.Stderr = b.env, &o, &e
	if err := c.Run(); err != nil {
		b.t.Fatalf("%v: %s", err, &e)
	}
	return o.String(), e.String()
}

// Scripts that call APIs and print the statuses of the responses.
const (
	callGitHub = `curl -s -o /dev/null -w '%{http_code} ' "https://api.github.com/[1-3]"; `
	callStripe = `curl -s -o /dev/null -w '%{http_code} ' "https://api.stripe.com/v1/[1-3]"; `
	callModel  = `curl -s -o /dev/null -w '%{http_code} ' https://api.anthropic.com/v1/messages -H 'anthropic-version: 2023-06-01' -d '{"model":"claude-sonnet-4-5","max_tokens":500,"messages":[{"role":"user","content":"Is it?"}]}'; `
)

// A run has one budget of calls for all upstreams, also in later runs of the same name. Another name has its own.
func TestRunHasOneBudgetOfCalls(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	out, errs := b.run(callGitHub+callModel+callStripe, "--run", "one", "--budget", "5 calls")
	if want := "200 200 200 200 200 429 429 "; out != want || b.calls.Load() != 5 {
		t.Errorf("statuses %q after %d calls, want %q", out, b.calls.Load(), want)
	}
	if !strings.Contains(errs, "2 refused by weir") || !strings.HasSuffix(errs, "; one used 5 of 5 calls\n") {
		t.Errorf("summary %q", errs)
	}
	if out, _ := b.run(callStripe, "--run", "one", "--budget", "5 calls"); out != "429 429 429 " {
		t.Errorf("the same run later: statuses %q, want 429", out)
	}
	if out, errs := b.run(callStripe, "--run", "two", "--budget", "4 calls"); out != "200 200 200 " || !strings.HasSuffix(errs, "; two used 3 of 4 calls\n") {
		t.Errorf("another run: statuses %q, summary %q", out, errs)
	}
}

// A command cannot choose another run.
func TestCommandCannotChooseItsRun(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	out, _ := b.run(`for run in a b c d; do curl -s -o /dev/null -w '%{http_code} ' -H "X-Agent-Run: $run" https://api.github.com/; done`, "--budget", "2 calls")
	if want := "200 200 429 429 "; out != want {
		t.Errorf("statuses %q, want %q", out, want)
	}
}

// A run within a run has its own budget, and is charged to the outer one as well.
func TestNestedRunIsChargedToBoth(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	b.env = append(b.env, "CALLS="+callGitHub+callModel)
	for _, c := range []struct{ inner, outer, want, used string }{
		{"2 calls", "4 calls", "200 200 429 429 200 200 429 ", "used 4 of 4 calls"},
		{"100 calls", "3 calls", "200 200 200 429 429 429 429 ", "used 3 of 3 calls"},
	} {
		before := b.calls.Load()
		out, errs := b.run(`"$0" run --quiet --budget "`+c.inner+`" -- sh -c "$CALLS"; `+callGitHub, "--budget", c.outer)
		if out != c.want || !strings.Contains(errs, c.used) {
			t.Errorf("%s in %s: statuses %q, want %q; summary %q", c.inner, c.outer, out, c.want, errs)
		}
		if n := b.calls.Load() - before; n != int64(strings.Count(c.want, "200")) {
			t.Errorf("%s in %s: %d calls reached the upstream", c.inner, c.outer, n)
		}
	}
	// Base URLs of the outer run lead around the proxy of the inner one.
	out, _ := b.run(`"$0" run --quiet --budget "1 call" -- sh -c 'curl -s -o /dev/null -w "%{http_code} " --noproxy "*" $OPENAI_BASE_URL/models $OPENAI_BASE_URL/models -o /dev/null'`, "--budget", "9 calls")
	if out != "200 429 " {
		t.Errorf("by base URL: statuses %q", out)
	}
}

// A run within a run of the same name is charged to it once, at any depth. Its own budget cannot allow more than the outer one.
// Without a budget it is the same run.
func TestNestedRunOfSameNameIsChargedOnce(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	b.env = append(b.env, "CALLS="+callGitHub)
	const inner = `"$0" run --quiet --run %s %s -- sh -c "$CALLS" "$0"; `
	for _, c := range []struct{ name, outer, script, want, used string }{
		{"smaller", "6 calls", fmt.Sprintf(inner, "smaller", `--budget "2 calls"`) + callGitHub, "200 200 429 200 200 200 ", "smaller used 5 of 6 calls"},
		{"larger", "2 calls", fmt.Sprintf(inner, "larger", `--budget "100 calls"`), "200 200 429 ", "larger used 2 of 2 calls"},
		{"none", "5 calls", fmt.Sprintf(inner, "none", "") + callGitHub, "200 200 200 200 200 429 ", "none used 5 of 5 calls"},
		{"deep", "9 calls", `"$0" run --quiet --run between --budget "8 calls" -- sh -c '` + fmt.Sprintf(inner, "deep", `--budget "2 calls"`) + `' "$0"; ` + callGitHub,
			"200 200 429 200 200 200 ", "deep used 5 of 9 calls"},
	} {
		before := b.calls.Load()
		out, errs := b.run(c.script, "--run", c.name, "--budget", c.outer)
		if out != c.want || !strings.Contains(errs, c.used) {
			t.Errorf("%s: statuses %q, want %q; summary %q, want %q", c.name, out, c.want, errs, c.used)
		}
		if n := b.calls.Load() - before; n != int64(strings.Count(c.want, "200")) {
			t.Errorf("%s: %d calls reached the upstream", c.name, n)
		}
	}
}

// A refusal by the outer run concerns the nested one only: it pauses no upstream for later runs, and keeps its wait.
func TestRefusalByOuterRunPausesNothing(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	out, errs := b.run(`"$0" run -v --run inner --budget "9 calls" -- sh -c 'curl -s -o /dev/null -w "%{http_code} %header{retry-after}\n" "https://api.github.com/[1-3]"' "$0"`, "--run", "outer", "--budget", "2 calls")
	statuses, wait, _ := strings.Cut(strings.TrimSpace(out), "429 ")
	if seconds, err := strconv.Atoi(wait); statuses != "200 \n200 \n" || err != nil || seconds < 23*3600 {
		t.Errorf("got %q, want a wait of a day", out)
	}
	if strings.Contains(errs, "throttle") || !strings.Contains(errs, "; inner used 2 of 9 calls\n") {
		t.Errorf("summary %q", errs)
	}
	if out, errs := b.run(callGitHub, "--run", "later", "--budget", "9 calls"); out != "200 200 200 " {
		t.Errorf("a later run: statuses %q, summary %q", out, errs)
	}
}

// Dollars and calls of one run count together. A budget of dollars is exceeded by at most the costs that were not known
// before the answers.
func TestRunHasBudgetOfDollars(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	out, errs := b.run(strings.Repeat(callModel, 7)+callGitHub, "--run", "money", "--budget", "0.05 USD, 8 calls")
	if want := "200 200 200 200 200 429 429 200 200 200 "; out != want {
		t.Errorf("statuses %q, want %q", out, want)
	}
	if !strings.Contains(errs, "2 refused by weir; money used 0.0") || !strings.Contains(errs, " of 0.05 USD, 8 of 8 calls") {
		t.Errorf("summary %q", errs)
	}
}

// A run with a file is charged to the file's limits with scope run.
func TestRunHasLimitsOfFile(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := `
callers:
  keys: {run: "header:X-Agent-Run"}
  limits: {global: off, user: off, user-day: off, run-calls: {rate: 2/h, shape: rolling, scope: run}}
upstreams:
  api: {url: "https://api.github.com", callers: true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if out, errs := b.run(callGitHub, "--run", name, "--config", file); out != "200 200 429 " || !strings.HasSuffix(errs, "; "+name+" used 2 of 2 calls\n") {
			t.Errorf("run %s: statuses %q, summary %q", name, out, errs)
		}
	}
}

// The summary reports the limits of pairs of this run, the smallest remainder first.
func TestRunReportsLimitsOfPairs(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := `
callers:
  keys: {run: "header:X-Agent-Run", tool: "query:tool"}
  limits: {global: off, user: off, user-day: off, each: {rate: 2/h, shape: rolling, scope: [run, tool]}}
upstreams:
  api: {url: "https://api.github.com", callers: true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const calls = `curl -s -o /dev/null -w '%{http_code} ' "https://api.github.com/?tool=fetch" "https://api.github.com/?tool=search" -o /dev/null; curl -s -o /dev/null "https://api.github.com/?tool=search"`
	b.run(calls, "--run", "other", "--config", file)
	out, errs := b.run(calls, "--run", "one", "--config", file)
	if want := "; one used 2 of 2 calls for run=one, tool=search, 1 of 2 calls for run=one, tool=fetch\n"; out != "200 200 " || !strings.HasSuffix(errs, want) {
		t.Errorf("statuses %q, summary %q, want %q", out, errs, want)
	}
}

// weir runs lists the runs of all commands of weir run that still run. Within a run it lists only that run.
func TestRunsListsCommandsThatStillRun(t *testing.T) {
	t.Parallel()
	b := newBudgetedRun(t)
	b.env = append(b.env, "MODEL="+callModel, `INNER=sh -c "$MODEL" >/dev/null; "$0" runs; env -u WEIR_RUN "$0" runs; env -u WEIR_RUN "$0" runs two --json; env -u WEIR_RUN "$0" runs three || echo status $?`)
	out, _ := b.run(callGitHub+`echo; "$0" run --quiet --run two --budget "1 USD" -- sh -c "$INNER" "$0" 2>&1`, "--run", "one", "--budget", "5 calls")
	_, out, _ = strings.Cut(out, "\n")
	tables, text, _ := strings.Cut(out, "{")
	var lines []string
	for line := range strings.Lines(tables) {
		line, _, _ = strings.Cut(strings.Join(strings.Fields(line), " "), "s ago")
		lines = append(lines, line[:len(line)-1])
	}
	const two, one = "two 1 1500 0.0105 0 ", "one 4 1500 0.0105 0 "
	if len(lines) != 5 {
		t.Fatalf("got %s", out)
	}
	slices.Sort(lines[3:])
	if lines[1] != two || !slices.Equal(lines[3:], []string{one, two}) || !strings.Contains(out, "run-money 0.9895/1.00 USD") || !strings.Contains(out, "run-calls 1/5") {
		t.Errorf("got %s", out)
	}
	if !strings.Contains(text, `"name": "two"`) || strings.Contains(text, `"name": "one"`) || !strings.Contains(text, `"usd": 0.0105`) || !strings.Contains(text, `no call of run "three" is known`) || !strings.HasSuffix(text, "status 1\n") {
		t.Errorf("got %s", text)
	}
	if out := weirRun(t, append(b.env, "WEIR_ADMIN_TOKEN="), "--budget", "1 call", "--quiet", "--", os.Args[0], "runs").out; out != "no runs: weir counts calls by run if keys of callers has run, and in weir run --budget\n" {
		t.Errorf("without a call: %q", out)
	}
}

func TestBadBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, value, says string }{
		{"--budget", "5", `"5": is not an amount with a unit`},
		{"--budget", "", ""},
		{"--budget", "5 USD,", `"": is not an amount with a unit`},
		{"--budget", "0 USD", "is zero"},
		{"--budget", "0.000 USD", "is zero"},
		{"--budget", "-1 calls", "is not an amount with a unit"},
		{"--budget", "1.5 calls", "is not a whole number"},
		{"--budget", "99999999999999999999 calls", "is not a whole number"},
		{"--budget", "1 EUR", "has an unknown unit"},
		{"--budget", "1 call, 2 calls", `"2 calls": repeats a unit`},
		{"--budget", "1 USD, 2 usd", `"2 usd": repeats a unit`},
		{"--budget", "9999999999 USD", "a billion dollars"},
		{"--run", "a b", "a name has up to 64 letters"},
		{"--run", strings.Repeat("x", 65), "a name has up to 64 letters"},
		{"--run", "x", "--run has no effect: add --budget"},
		{"--preset", "nothing", `unknown preset "nothing"`},
	} {
		got := weirRun(t, os.Environ(), c.flag, c.value, "--", "true")
		want := 125
		if c.says == "" {
			want = 0
		}
		if got.status != want || !strings.Contains(got.err, c.says) || strings.Contains(got.err, "goroutine") {
			t.Errorf("%s %q: got %+v, want %q", c.flag, c.value, got, c.says)
		}
	}
	got := weirRun(t, os.Environ(), "--config", "x.yaml", "--budget", "1 call", "--", "true")
	if got.status != 125 || !strings.Contains(got.err, "--config and --budget cannot be combined") {
		t.Errorf("got %+v", got)
	}
}
