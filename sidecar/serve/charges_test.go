package serve

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// A tongue is the API of a preset.
type tongue struct {
	preset, model, second string
	path                  func(model string, stream bool) string
	body                  func(model, text string, stream bool) string
	word                  string // a word in each piece of a response
}

func plainPath(path string) func(string, bool) string {
	return func(string, bool) string { return path }
}

var tongues = []tongue{
	{"openai", "gpt-4o", "gpt-4o-mini", plainPath("/v1/chat/completions"), func(model, text string, stream bool) string {
		return fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}]}`, model, stream, text)
	}, "word"},
	{"openai", "gpt-4o", "gpt-4o-mini", plainPath("/v1/responses"), func(model, text string, stream bool) string {
		return fmt.Sprintf(`{"model":%q,"stream":%v,"input":%q}`, model, stream, text)
	}, `"delta":"`},
	{"anthropic", "claude-3-haiku-20240307", "claude-3-5-haiku-20241022", plainPath("/v1/messages"), func(model, text string, stream bool) string {
		return fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":300,"messages":[{"role":"user","content":%q}]}`, model, stream, text)
	}, "word"},
	{"gemini", "gemini-2.5-flash", "gemini-2.5-pro", func(model string, stream bool) string {
		if stream {
			return "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
		}
		return "/v1beta/models/" + model + ":generateContent"
	}, func(_, text string, _ bool) string {
		return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%q}]}]}`, text)
	}, "word"},
}

// A rig is a sidecar in virtual time in front of a simulated provider, with all features on.
type rig struct {
	*testing.T
	tongue
	n      *memnet.Network
	sim    *llmsim.Provider
	s      *Server
	file   string
	more   string // more lines of the file
	store  *fickle
	reload chan os.Signal
	client *http.Client
	stop   func()
}

// charging adds quotas to the preset's, so that the test can read all charges. They reset monthly.
const charging = `
callers: {limits: {global: off, user: off, user-day: {amount: 1000000, every: month, scope: user, plans: {premium: 3x, none: 0.000001}},
  user-tokens: {amount: 1000000000, every: month, unit: tokens, scope: user}}}
upstreams:
  chat:
    preset: PRESET
    url: http://model.test
    limits:
      sum: {amount: 1000000000, every: month, unit: tokens, scope: model}
      calls: {amount: 1000000000, every: month, scope: model}
    llm: {cache: true, cascade: {tiers: [{name: second, model: SECOND}, {cached: true}, {message: We are sorry.}]}}
`

func newRig(t *testing.T, way tongue, more string) *rig {
	r := &rig{T: t, tongue: way, more: more, n: memnet.New(), store: new(fickle), reload: make(chan os.Signal)}
	r.sim = llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond, Between: 20 * time.Millisecond}, Answer: func(q llmsim.Question) llmsim.Reply {
		return llmsim.Reply{Text: strings.Repeat("word ", 60)}
	}})
	r.n.Serve("model.test", r.sim)
	r.file = filepath.Join(t.TempDir(), "weir.yaml")
	r.write(1)
	var err error
	if r.s, err = New(r.file, Options{Log: io.Discard, Env: noEnv, Listen: r.n.Hear, Dial: r.n.Dial, Store: r.store.before}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.s.Run(ctx, r.reload, nil) }()
	r.client = &http.Client{Transport: r.n.Transport()}
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.n.Close()
	}
	return r
}

// write writes the file. Another n changes its content.
func (r *rig) write(n int) {
	text := strings.NewReplacer("PRESET", r.preset, "SECOND", r.second, "We are sorry.", fmt.Sprint("We are sorry ", n)).Replace("listen: localhost:80\nadmin: off\n" + r.more + charging)
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// A bill contains all charges so far.
type bill struct {
	limit, calls   int64 // of the provider
	caller, asked  int64 // of the callers
	ledger, booked int64 // tokens, and calls with a cost
	sent           int   // attempts
}

func (b bill) since(o bill) bill {
	return bill{b.limit - o.limit, b.calls - o.calls, b.caller - o.caller, b.asked - o.asked, b.ledger - o.ledger, b.booked - o.booked, b.sent - o.sent}
}

func (r *rig) bill() (b bill) {
	used := func(u *weir.Upstream, limit string) (n int64) {
		for _, l := range u.Look(1000).Limits {
			if l.Limit.Name == limit && (l.Key != "" || l.Keys == 0) {
				n += l.Level.Full - l.Level.Left
			}
		}
		return n
	}
	chat, callers := r.s.proxy.Upstreams()["chat"], r.s.models.counted()
	b.limit, b.calls = used(chat, "sum"), used(chat, "calls")
	b.caller, b.asked = used(callers, "user-tokens"), used(callers, "user-day")
	for u := range r.s.models.used() {
		b.ledger += u.Input + u.Output
		b.booked += u.Calls
		if u.Input < 0 || u.Output < 0 || u.Cost < 0 {
			r.Errorf("the ledger has %+v", u)
		}
	}
	b.sent = len(r.sim.Log())
	return b
}

// A reply is the part of a response that a caller has received.
type reply struct {
	status int
	tier   string
	words  int64 // number of words read
	whole  bool
	text   string
}

// ask sends a question and disconnects after leave bytes; 0 means at the end.
func (r *rig) ask(text string, stream bool, leave int64, header ...string) (a reply) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/chat"+r.path(r.model, stream), strings.NewReader(r.body(r.model, text, stream)))
	if err != nil {
		r.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer sk-test")
	if r.preset == "anthropic" {
		q.Header.Del("Authorization")
		q.Header.Set("X-Api-Key", "sk-test")
		q.Header.Set("Anthropic-Version", "2023-06-01")
	} else if r.preset == "gemini" {
		q.Header.Del("Authorization")
		q.Header.Set("X-Goog-Api-Key", "sk-test")
	}
	q.Header.Set("X-User", "ann")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(q)
	if err != nil {
		return reply{text: err.Error()}
	}
	var b []byte
	if leave > 0 {
		b, err = io.ReadAll(io.LimitReader(resp.Body, leave))
	} else {
		b, err = io.ReadAll(resp.Body)
	}
	_ = resp.Body.Close()
	cancel()
	return reply{resp.StatusCode, resp.Header.Get(gateway.TierHeader), int64(strings.Count(string(b), r.word)), leave == 0 && err == nil, string(b)}
}

var spoilers = []llmsim.Fault{
	{Kind: llmsim.StreamError}, {Kind: llmsim.StreamError, Events: 2}, {Kind: llmsim.StreamError, Events: 50}, {Kind: llmsim.Cut}, {Kind: llmsim.Cut, Events: 2}, {Kind: llmsim.Cut, Events: 50},
	{Kind: llmsim.NoUsage}, {Kind: llmsim.WrongUsage}, {Kind: llmsim.WrongUsage, Factor: 3}, {Kind: llmsim.WrongUsage, Factor: 0.2}, {Kind: llmsim.WrongUsage, Factor: 1e9},
	{Kind: llmsim.Error}, {Kind: llmsim.Error, Status: 503}, {Kind: llmsim.Throttle}, {Kind: llmsim.Throttle, Hint: 5 * time.Second}, {Kind: llmsim.Throttle, Day: true, Hint: time.Hour},
	{Kind: llmsim.Hang}, {Kind: llmsim.Hang, Where: llmsim.AfterHeaders}, {Kind: llmsim.Hang, Where: llmsim.AfterContent, Events: 3},
	{Kind: llmsim.Drop}, {Kind: llmsim.Drop, Where: llmsim.AfterContent, Events: 3}, {Kind: llmsim.EmptyBody}, {Kind: llmsim.BadJSON}, {Kind: llmsim.BadJSON, Events: 5}, {Kind: llmsim.Slow, Delay: 3 * time.Second},
}

// After every kind of call, all counters agree: the caller's quota, the ledger and its metrics. The provider's limits
// are charged at least as much, and no counter shows less than the caller has read. A response without an attempt costs
// nothing.
func TestWhatACallCostsIsOneNumber(t *testing.T) {
	seed := rand.Uint64()
	for i, way := range tongues {
		t.Run(fmt.Sprint(way.preset, " ", i), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			synctest.Test(t, func(t *testing.T) { playCharges(t, way, random) })
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

func playCharges(t *testing.T, way tongue, random *rand.Rand) {
	r := newRig(t, way, "")
	defer r.stop()
	for i := range campaign.Histories(100, 300) {
		story := fmt.Sprintf("call %d:", i)
		if random.IntN(2) == 0 {
			f := spoilers[random.IntN(len(spoilers))]
			f.Times = 1 + random.IntN(3)
			if random.IntN(3) == 0 {
				f.Model = way.model
			}
			r.sim.Fault(f)
			story += fmt.Sprintf(" %+v", f)
		}
		stream, leave, text := random.IntN(3) > 0, int64(0), fmt.Sprint("question ", random.IntN(1000))
		if random.IntN(4) == 0 {
			text = fmt.Sprint("question ", random.IntN(5)) // asked before
		}
		if random.IntN(3) == 0 {
			leave = 1 + random.Int64N(12_000)
		}
		chat, header := r.s.proxy.Upstreams()["chat"], []string(nil)
		switch random.IntN(20) {
		case 0:
			story += " paused"
			if err := chat.Pause(pause.Subject{Kind: pause.Limit, Name: "calls"}, time.Duration(1+random.IntN(60))*time.Second, true); err != nil {
				t.Error(err)
			}
		case 1:
			story += " open"
			for _, b := range chat.Breakers() {
				b.ForceOpen(chat.Now(), time.Duration(1+random.IntN(60))*time.Second)
			}
		case 2:
			header = []string{"X-Plan", "none"} // a caller with only one call
		}
		var wg sync.WaitGroup
		if random.IntN(8) == 0 {
			story += " reload"
			wg.Go(func() {
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				r.write(i)
				r.reload <- os.Interrupt
			})
		}
		before := r.bill()
		a := r.ask(text, stream, leave, header...)
		wg.Wait()
		time.Sleep(10 * time.Minute) // until everything is settled, including cache refreshes
		synctest.Wait()
		r.sim.Clear()
		b := r.bill().since(before)
		story += fmt.Sprintf(" stream %v, leave %d: %d %s, %d words, whole %v; charged %+v", stream, leave, a.status, a.tier, a.words, a.whole, b)
		if b.booked > 1 {
			for _, x := range r.sim.Log()[len(r.sim.Log())-b.sent:] {
				story += fmt.Sprintf("\n   %+v", x)
			}
			story += fmt.Sprintf("\n   text: %s\n", text)
		}
		switch {
		case b.limit < 0 || b.calls < 0 || b.caller < 0 || b.asked < 0 || b.ledger < 0 || b.booked < 0:
			t.Error(story, ": less than nothing")
		case a.tier == "cached" && b.caller == 0: // a refresh may have been charged
		case b.ledger != b.caller:
			t.Error(story, ": the ledger has another number than the caller's quota")
		case b.sent == 0 && (b.limit != 0 || b.calls != 0 || b.ledger != 0 || b.caller != 0):
			t.Error(story, ": nothing was sent")
		case a.status == http.StatusTooManyRequests && a.tier == "" && (b.sent == 0 && b.asked != 0 || b.caller != 0):
			t.Error(story, ": a refusal is charged")
		case b.booked > 1 || b.asked > 1:
			t.Error(story, ": charged twice")
		case a.tier == "primary" || a.tier == "second":
			if stream && b.ledger < a.words && !(a.whole && strings.Contains(story, "Factor:0.2")) { // the usage in a complete response counts
				t.Error(story, ": less than was read")
			}
			if b.limit < b.ledger && way.preset != "gemini" {
				t.Error(story, ": the limit has less than the ledger")
			}
			if b.booked != 1 || b.asked != 1 {
				t.Error(story, ": not booked")
			}
		case a.tier != "" && b.booked != 0:
			t.Error(story, ": no model has answered")
		}
		if int(b.calls) > b.sent {
			t.Error(story, ": more calls are counted than were sent")
		}
	}
}

// If the second tier answers and the caller disconnects, the charge is the estimate for the second model, which is less
// than for the first.
func TestALeaverOfTheSecondTierPaysForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tongues[0], "")
		defer r.stop()
		r.model = r.second
		for i := range 30 {
			r.ask(fmt.Sprint("warm ", i), false, 0)
			time.Sleep(time.Minute)
		}
		r.model = tongues[0].model
		r.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: r.model, Times: -1})
		before := r.bill()
		a := r.ask("hi", true, 2000)
		time.Sleep(time.Minute)
		if b := r.bill().since(before); a.tier != "second" || b.caller != b.ledger || b.caller > 500 {
			t.Errorf("%d %s: charged %+v", a.status, a.tier, b)
		}
	})
}
