package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// chatDesign returns examples/designs/chat.yaml with the hosts of n. The table of static answers is a file.
func chatDesign(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/designs/chat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(answers, []byte("answers:\n  - keywords: [opening hours]\n    answer: From nine to five.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := string(data)
	for old, replacement := range map[string]string{
		"cloudwatch: {to: lines, region: eu-central-1}\n":    "",
		"traces: {region: eu-central-1, share: 5%}\n":        "",
		"store: {redis: \"redis://redis.internal:6379\"}\n":  "",
		"https://bedrock-runtime.eu-central-1.amazonaws.com": "http://model.test",
		"{table: chat-answers, region: eu-central-1}":        strconv.Quote(answers),
	} {
		if !strings.Contains(yaml, old) {
			t.Fatalf("chat.yaml does not contain %q", old)
		}
		yaml = strings.ReplaceAll(yaml, old, replacement)
	}
	return yaml
}

// A chatLoad is a number of calls to a cascade, and how many run concurrently.
type chatLoad struct{ calls, workers int }

// A chatResult contains the times of all calls in order, and the number of answers of each tier.
type chatResult struct {
	times []time.Duration
	tiers map[string]int
}

func (r chatResult) percentile(p int) time.Duration { return r.times[(len(r.times)*p-1)/100] }

func (r chatResult) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, max %v, tiers %v", r.percentile(50), r.percentile(99), r.times[len(r.times)-1], r.tiers)
}

// play makes the calls with ask, which returns the tier that answered.
func (l chatLoad) play(ask func(i int) string) chatResult {
	var mu sync.Mutex
	var wg sync.WaitGroup
	r, next := chatResult{tiers: make(map[string]int)}, 0
	for range l.workers {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= l.calls {
					return
				}
				start := time.Now()
				tier := ask(i)
				mu.Lock()
				r.times = append(r.times, time.Since(start))
				r.tiers[tier]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(r.times)
	return r
}

const chatModel = "anthropic.claude-3-5-sonnet-20240620-v1:0"

// playChat runs a load on the configuration yaml in front of models, and returns its result.
func playChat(t *testing.T, yaml string, models http.Handler, load chatLoad, request func(i int) *http.Request) chatResult {
	t.Helper()
	n := memnet.New()
	defer n.Close()
	n.Serve("model.test", models)
	stop := serveInside(t, n, yaml)
	defer stop()
	client := &http.Client{Transport: n.Transport()}
	return load.play(func(i int) string {
		q := request(i)
		q.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(q)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
		return resp.Header.Get(gateway.TierHeader)
	})
}

// converse returns a question to the primary model of chat.yaml, each by another user.
func converse(i int) *http.Request {
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":[{"text":"question %d"}]}]}`, i)
	q, _ := http.NewRequest(http.MethodPost, "http://localhost/bedrock/model/"+chatModel+"/converse", strings.NewReader(body))
	q.Header.Set("X-User", fmt.Sprint("user-", i))
	return q
}

func TestChatDesignAnswersWithin3sWhileAModelIsAvailable(t *testing.T) {
	awsForTests(t)
	const preset, slow = "preset: bedrock\n", "preset: bedrock\n    limits: {learnt: {rate: 100/s, burst: 10, scope: model, adaptive: {start: 1/s}}}\n"
	for name, c := range map[string]struct {
		learned string
		fault   llmsim.Fault
	}{
		"models are well":                   {learned: preset},
		"models are well, learned rate 1/s": {learned: slow},
		"primary at 429":                    {preset, llmsim.Fault{Kind: llmsim.Throttle, NoHint: true}},
		"primary at 429 with a hint":        {preset, llmsim.Fault{Kind: llmsim.Throttle, Hint: 5 * time.Second}},
		"primary at 500":                    {preset, llmsim.Fault{Kind: llmsim.Error}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}})
				if c.fault.Kind != "" {
					c.fault.Model, c.fault.Times = chatModel, -1
					sim.Fault(c.fault)
				}
				r := playChat(t, strings.Replace(chatDesign(t), preset, c.learned, 1), sim, chatLoad{100, 10}, converse)
				if t.Log(r); r.percentile(99) >= 3*time.Second || r.tiers["primary"]+r.tiers["secondary"] != 100 {
					t.Errorf("%v, want p99 below 3s and only answers of models", r)
				}
			})
		})
	}
}

// 120 calls arrive together at an upstream that has not yet reported its limits. The preset's limits allow 10 of them.
func TestCallsWaitForTheLimitsThatAnUpstreamReports(t *testing.T) {
	const yaml = `upstreams:
  claude:
    preset: anthropic
    url: http://model.test
    llm: {cascade: {tiers: [{name: secondary, model: claude-haiku-4-5}, {message: We are sorry.}]}}
`
	for name, c := range map[string]struct {
		perMinute int64 // 0 means that the upstream has no limit and reports none
		fault     llmsim.Fault
	}{
		"1000/min":                     {perMinute: 1000},
		"4000/min":                     {perMinute: 4000},
		"4000/min, primary at 429":     {4000, llmsim.Fault{Kind: llmsim.Throttle}},
		"4000/min, primary at 529":     {4000, llmsim.Fault{Kind: llmsim.Error, Status: 529}},
		"1000/min, primary at 429":     {1000, llmsim.Fault{Kind: llmsim.Throttle}},
		"not reported":                 {},
		"not reported, primary at 429": {fault: llmsim.Fault{Kind: llmsim.Throttle, NoHint: true}},
		"not reported, primary at 529": {fault: llmsim.Fault{Kind: llmsim.Error, Status: 529}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := llmsim.New(llmsim.Config{Default: llmsim.Model{
					FirstToken: 300 * time.Millisecond, Limits: llmsim.Limits{Requests: llmsim.Rate{N: c.perMinute}},
				}})
				if c.fault.Kind != "" {
					c.fault.Model, c.fault.Times = "claude-sonnet-4-5", -1
					sim.Fault(c.fault)
				}
				r := playChat(t, yaml, sim, chatLoad{120, 120}, func(i int) *http.Request {
					body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"question %d"}]}`, i)
					q, _ := http.NewRequest(http.MethodPost, "http://localhost/claude/v1/messages", strings.NewReader(body))
					q.Header.Set("X-Api-Key", "key")
					q.Header.Set("Anthropic-Version", "2023-06-01")
					return q
				})
				if t.Log(r); r.percentile(99) >= 3*time.Second || r.tiers["message"] > 0 {
					t.Errorf("%v, want p99 below 3s and only answers of models", r)
				}
			})
		})
	}
}

// awsForTests sets AWS credentials.
func awsForTests(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestChatDesignAnswersWithin5sWhileAllModelsAreDown(t *testing.T) {
	awsForTests(t)
	for name, fault := range map[string]llmsim.Fault{
		"500":             {Kind: llmsim.Error},
		"503":             {Kind: llmsim.Error, Status: 503},
		"429":             {Kind: llmsim.Throttle, NoHint: true},
		"429 with a hint": {Kind: llmsim.Throttle, Hint: 10 * time.Second},
		"resets":          {Kind: llmsim.Reset},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}})
				fault.Times = -1
				sim.Fault(fault)
				r := playChat(t, chatDesign(t), sim, chatLoad{100, 10}, converse)
				if t.Log(r); r.percentile(99) > 5*time.Second || r.tiers["message"] != 100 {
					t.Errorf("%v, want p99 of at most 5s and 100 messages", r)
				}
			})
		})
	}
}

// The primary has a rate of 1 in 10 s and fails. Once its breaker is open, calls in its queue get the answer of the
// second model, although the cascade permits a wait of 30 s.
func TestCallLeavesTheQueueOfATierWhoseBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}})
		sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: "gpt-4o", Times: -1})
		const yaml = `upstreams:
  chat:
    preset: openai
    url: http://model.test
    limits: {rpm: {rate: 6/min, burst: 3, scope: model}}
    retry: {attempts: 1}
    llm: {patience: 1m, cascade: {wait: 30s, tiers: [{name: second, upstream: spare, model: gpt-4o-mini}, {message: We are sorry.}]}}
  spare: {preset: openai, url: "http://model.test"}
`
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(300 * time.Millisecond)
			sim.ServeHTTP(w, r)
		})
		r := playChat(t, yaml, slow, chatLoad{6, 6}, chatRequest)
		if r.times[5] > 2*time.Second {
			t.Errorf("%v, want all calls to leave the queue within 2s", r)
		}
	})
}

func TestModelCallIsRetriedFor15s(t *testing.T) {
	for name, c := range map[string]struct {
		timeout   string
		low, high time.Duration
	}{
		"not stated": {low: 5 * time.Second, high: 15*time.Second + 500*time.Millisecond},
		"stated":     {timeout: "100s", low: 16 * time.Second, high: 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				sim := llmsim.New(llmsim.Config{})
				sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, NoHint: true, Times: -1})
				n.Serve("model.test", sim)
				// 8 s, then 16 s: the third attempt of a caller that states no timeout would begin after 24 s of waits.
				defer serveInside(t, n, "upstreams: {chat: {preset: openai, url: \"http://model.test\", retry: {attempts: 3, base: 8s, cap: 16s, jitter: none}}}\n")()
				client, q := &http.Client{Transport: n.Transport()}, chatRequest(0)
				q.Header.Set("Content-Type", "application/json")
				if c.timeout != "" {
					q.Header.Set("X-Weir-Timeout", c.timeout)
				}
				start := time.Now()
				resp, err := client.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if took := time.Since(start); took < c.low || took > c.high {
					t.Errorf("status %d after %v, want %v to %v", resp.StatusCode, took, c.low, c.high)
				}
			})
		})
	}
}

// chatRequest returns a question to OpenAI's chat completions.
func chatRequest(i int) *http.Request {
	body := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":"question %d"}]}`, i)
	q, _ := http.NewRequest(http.MethodPost, "http://localhost/chat/v1/chat/completions", strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer sk-test")
	return q
}
