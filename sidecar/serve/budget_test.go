package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// budgetIs reads a limit in dollars from the decision API, in millionths of a dollar.
func budgetIs(t *testing.T, client *http.Client, upstream string) (left, full int64) {
	t.Helper()
	resp, err := client.Get("http://127.0.0.1:81/v1/limits?upstream=" + upstream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a struct {
		Limits []struct {
			Limit, Unit string
			Left, Full  int64
		}
	}
	body, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatal(err)
	}
	for _, l := range a.Limits {
		if l.Unit == "usd" {
			return l.Left, l.Full
		}
	}
	t.Fatalf("no limit in dollars in %s", body)
	return 0, 0
}

// decides is the part of a file that opens the decision API.
const decides = "decide: {listen: \"127.0.0.1:81\"}\n"

// costOf returns the cost that a response reports, in millionths of a dollar, rounded up.
func costOf(t *testing.T, resp *http.Response) int64 {
	t.Helper()
	all := append(resp.Header["X-Weir-Cost"], resp.Trailer["X-Weir-Cost"]...)
	if len(all) != 1 {
		t.Fatalf("%s: costs %q, want one", resp.Status, all)
	}
	whole, part, _ := strings.Cut(strings.TrimSuffix(all[0], " USD"), ".")
	n, err := strconv.ParseInt(whole+(part + "000000000000")[:12], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return (n + 999_999) / 1_000_000
}

// The spent amount of a budget is the sum of the reported costs, each rounded up to a millionth of a dollar. That holds
// for every family, with and without streams, and for concurrent calls.
func TestBudgetSpendsTheSumOfReportedCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var seq atomic.Int64
		up := n.Serve("api.test", llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 10 * time.Millisecond}, Answer: func(q llmsim.Question) llmsim.Reply {
			i := seq.Add(1)
			return llmsim.Reply{Text: "hi", Input: q.Input, Output: 1 + i*7%900}
		}}))
		defer serveInside(t, n, decides+"upstreams: {up: {url: \""+up+"\", llm: {}, concurrency: off, breaker: off, limits: {money: {amount: 25, every: day, unit: usd}}}}\n")()
		client := &http.Client{Transport: n.Transport()}
		var sum atomic.Int64
		var all sync.WaitGroup
		for w := range 10 {
			all.Go(func() {
				for i := range 30 {
					text := strings.Repeat("word ", 1+(w*31+i*17)%200)
					path, body := "/up/v1/chat/completions", `{"model":"gpt-4.1","max_tokens":1000,"messages":[{"role":"user","content":"`+text+`"}]}`
					switch i % 4 {
					case 1:
						body = strings.Replace(body, "{", `{"stream":true,`, 1)
					case 2:
						path, body = "/up/v1/messages", `{"model":"claude-opus-4-5","max_tokens":1000,"messages":[{"role":"user","content":"`+text+`"}]}`
					case 3:
						path, body = "/up/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"role":"user","parts":[{"text":"`+text+`"}]}]}`
					}
					req, _ := http.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
					req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}, "X-Api-Key": {"k"}, "X-Goog-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}
					resp, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					answer, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("X-Weir-Budget"), "money; left=2") {
						t.Errorf("%s: %s, budget %q, %.200s", path, resp.Status, resp.Header.Get("X-Weir-Budget"), answer)
						return
					}
					sum.Add(costOf(t, resp))
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if left, full := budgetIs(t, client, "up"); full != 25_000_000 || full-left != sum.Load() || sum.Load() == 0 {
			t.Errorf("%d of %d spent, want %d", full-left, full, sum.Load())
		}
	})
}

// A played is a provider whose answers have costs like those of agents: log-normal inputs and outputs.
type played struct {
	mu                   sync.Mutex
	r                    *rand.Rand
	input, wide          float64 // tokens, median; and the deviation of the logarithm
	output, deep         float64
	most                 float64
	grows                int64 // after this many calls, outputs are five times as long; 0 means never
	calls, inFlight, top atomic.Int64
}

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	p.top.Store(max(p.top.Load(), p.inFlight.Add(1)))
	defer p.inFlight.Add(-1)
	p.mu.Lock()
	in := p.input * math.Exp(p.wide*p.r.NormFloat64())
	out := p.output * math.Exp(p.deep*p.r.NormFloat64())
	p.mu.Unlock()
	if p.grows > 0 && p.calls.Load() > p.grows {
		out *= 5
	}
	out = math.Ceil(min(out, p.most))
	time.Sleep(300*time.Millisecond + min(4*time.Second, time.Duration(out)*time.Second/1200))
	p.calls.Add(1)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, int(math.Ceil(in)), int(out))
}

// spend makes calls by 100 callers until the budget refuses them, and returns the spent amount and the budget, in millionths
// of a dollar.
func spend(t *testing.T, p *played, limit string) (spent, full float64) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", p)
		defer serveInside(t, n, decides+"upstreams: {up: {url: \""+up+"\", max_wait: 30m, timeouts: {attempt: 1h, call: 2h}, llm: {first_content: off, idle: off, total: off, patience: off}, retry: off, breaker: off, concurrency: off, limits: {money: "+limit+"}}}\n")()
		client := &http.Client{Transport: n.Transport()}
		var sum atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for failed := 0; failed < 3; {
					begin := time.Now()
					body := fmt.Sprintf(`{"model":"claude-sonnet-4","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, int(p.most))
					resp, err := client.Post("http://localhost/up/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					text, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode == http.StatusOK {
						sum.Add(costOf(t, resp))
						continue
					}
					if resp.StatusCode != http.StatusTooManyRequests {
						t.Errorf("%s %v %s after %v", resp.Status, resp.Header, text, time.Since(begin))
						return
					}
					failed++
					time.Sleep(time.Minute)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		left, of := budgetIs(t, client, "up")
		if now := of - left; now > of || left > 0 && now != sum.Load() {
			t.Errorf("the budget has spent %d, want %d", now, sum.Load())
		}
		spent, full = float64(sum.Load()), float64(of)
	})
	return spent, full
}

// With 100 callers, a budget that holds expected costs is used up to 97% at least, and exceeded by 5 mean calls at most:
// for short answers, for the long tail of agents, and if answers become five times as long.
func TestLearnedHoldUsesAndKeepsTheBudget(t *testing.T) {
	for name, p := range map[string]*played{
		"chat":  {r: rand.New(rand.NewPCG(1, 1)), input: 10, wide: .1, output: 400, deep: .8, most: 4096},
		"agent": {r: rand.New(rand.NewPCG(2, 1)), input: 10, wide: .1, output: 800, deep: 1.2, most: 64000},
		"grows": {r: rand.New(rand.NewPCG(3, 1)), input: 10, wide: .1, output: 400, deep: .8, most: 4096, grows: 400},
	} {
		t.Run(name, func(t *testing.T) {
			spent, full := spend(t, p, "{amount: 6, every: month, unit: usd}")
			mean := spent / float64(p.calls.Load())
			t.Logf("used %.1f%%, over %.1f mean calls, %d calls, %d in flight", 100*spent/full, (spent-full)/mean, p.calls.Load(), p.top.Load())
			if spent < .97*full || spent > full+5*mean || p.top.Load() < 80 {
				t.Errorf("%.0f of %.0f spent, with a mean of %.0f and %d in flight", spent, full, mean, p.top.Load())
			}
		})
	}
}

// hold: most never exceeds the budget, in a calendar window and in a rolling one.
func TestMostHoldNeverExceedsTheBudget(t *testing.T) {
	for _, limit := range []string{"{amount: 6.50, every: month, unit: usd, hold: most}", "{amount: 6.50, window: 240h, unit: usd, hold: most}"} {
		p := &played{r: rand.New(rand.NewPCG(4, 1)), input: 10, wide: .1, output: 800, deep: 1.2, most: 4096}
		spent, full := spend(t, p, limit)
		t.Logf("used %.1f%%, %d calls, %d in flight", 100*spent/full, p.calls.Load(), p.top.Load())
		if spent > full || spent < .97*full || p.top.Load() < 90 {
			t.Errorf("%.0f of %.0f spent, %d in flight", spent, full, p.top.Load())
		}
	}
}

// A refusal reports either a spent budget, or that calls in flight hold the missing amount. A model without a price is
// refused, unless the price file has a default price.
func TestBudgetRefusalsSaySpentOrHeldOrUnpriced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		slow := make(chan struct{})
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "slow") {
				<-slow
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":40000}}`)
		}))
		defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", max_wait: off, llm: {}, retry: off, breaker: off, concurrency: off, limits: {money: {amount: 2, every: day, zone: Europe/Berlin, unit: usd}}}}\n")()
		client := &http.Client{Transport: n.Transport()}
		ask := func(model, text string) (*http.Response, string) {
			resp, err := client.Post("http://localhost/up/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+model+`","max_tokens":40000,"messages":[{"role":"user","content":"`+text+`"}]}`))
			if err != nil {
				t.Error(err)
				return &http.Response{Header: http.Header{}}, ""
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp, string(body)
		}
		check := func(what string, resp *http.Response, body string, status int, parts ...string) {
			t.Helper()
			for _, p := range parts {
				if !strings.Contains(body, p) {
					t.Errorf("%s: the body %s lacks %q", what, body, p)
				}
			}
			if resp.StatusCode != status {
				t.Errorf("%s: %s %s, want %d", what, resp.Status, body, status)
			}
		}
		resp, body := ask("unheard-of", "hi")
		check("no price", resp, body, 400, "the model has no price, and limit money counts dollars")
		if resp, body = ask("claude-sonnet-4", "hi"); resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("X-Weir-Budget"), "money; left=1.9") {
			t.Errorf("%v %s", resp, body)
		}
		for range 2 {
			go ask("claude-sonnet-4", "slow")
			synctest.Wait()
		}
		resp, body = ask("claude-sonnet-4", "hi")
		check("held", resp, body, 429, "1.39997 USD are not spent, but calls in flight hold 1.20", "; the call needs 0.60", "retry after")
		if strings.Contains(body, "is spent") || resp.Header.Get("X-Should-Retry") == "false" || resp.Header.Get("X-Weir-Refused") != "rate_limited" {
			t.Errorf("held: %v %s", resp.Header, body)
		}
		close(slow)
		synctest.Wait()
		resp, body = ask("claude-sonnet-4", "hi")
		check("spent", resp, body, 429, "the budget is spent: 1.80009 of 2.00 USD", "resets at 2000-01-02T00:00:00+01:00")
		if strings.Contains(body, "hold") || resp.Header.Get("X-Should-Retry") != "false" || resp.Header.Get("X-Weir-Refused") != "quota_exhausted" || resp.Header.Get("X-Weir-Budget") != "money; left=0.19991; reset=2000-01-02T00:00:00+01:00" {
			t.Errorf("spent: %v %s", resp.Header, body)
		}
	})
}

// Callers that leave, streams that are cut, failures and timeouts leave nothing held, and each attempt is held once.
func TestBudgetHoldsNothingAfterCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		r := rand.New(rand.NewPCG(5, 5))
		var mu sync.Mutex
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.Copy(io.Discard, req.Body)
			mu.Lock()
			kind, d := r.IntN(7), time.Duration(r.IntN(1000))*time.Millisecond
			mu.Unlock()
			time.Sleep(d)
			switch kind {
			case 0:
				w.WriteHeader(http.StatusInternalServerError)
			case 1:
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			case 2:
				panic(http.ErrAbortHandler)
			case 3:
				time.Sleep(20 * time.Second)
			case 4:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(d)
				panic(http.ErrAbortHandler)
			default:
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":40}}`)
			}
		}))
		defer serveInside(t, n, "admin: 127.0.0.2:81\ncallers: {limits: {global: off, user: off, user-day: off, own: {amount: 50, window: 24h, unit: usd, scope: user}}}\nupstreams: {up: {url: \""+up+"\", llm: {}, timeouts: {attempt: 3s}, concurrency: off, breaker: off, limits: {money: {amount: 50, every: month, unit: usd, hold: most}}}}\n")()
		client := &http.Client{Transport: n.Transport()}
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(50+i*37%4000)*time.Millisecond)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/up/v1/chat/completions", strings.NewReader(`{"model":"gpt-4.1","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`))
				req.Header.Set("X-User", "alice")
				if resp, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		resp, err := client.Get("http://127.0.0.2:81/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var report status.Report
		if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, u := range report.Upstreams {
			for _, l := range u.Limits {
				if l.USD == nil {
					continue
				}
				found++
				if l.USD.Held != 0 || !(l.USD.Spent > 0.0001 && l.USD.Spent < 3) || math.Abs(l.USD.Spent+l.USD.Left-50) > 1e-9 {
					t.Errorf("%s: %+v", l.Name, *l.USD)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d budgets, want 2: %+v", found, report.Upstreams)
		}
	})
}
