package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// shipped returns an upstream from a configuration file, with the settings of its preset and cascade.
func shipped(t testing.TB, lines string) (weir.Policy, gateway.Options) {
	t.Helper()
	file, err := config.Parse("weir.yaml", []byte("upstreams:\n  chat: {url: \"http://127.0.0.1:1\", "+lines+"}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := file.LLM["chat"]
	o := gateway.Options{FirstContent: c.FirstContent, Idle: c.Idle, Total: c.Total, Hold: c.HoldFor, Patience: c.Patience}
	if c.Cascade == nil {
		return file.Upstreams[0].Policy, o
	}
	plan := cascade.Config{Deadline: c.Cascade.Deadline, Tiers: []cascade.TierConfig{{Name: "primary", Confidence: 1}}}
	o.Tiers = []gateway.Tier{{}}
	for _, x := range c.Cascade.Tiers {
		plan.Tiers = append(plan.Tiers, cascade.TierConfig{Name: x.Name, Confidence: x.Confidence, Timeout: x.Timeout, Instant: len(x.Messages) > 0})
		o.Tiers = append(o.Tiers, gateway.Tier{Model: x.Model, Messages: x.Messages})
	}
	if o.Cascade, err = cascade.New(plan, cascade.Options{}); err != nil {
		t.Fatal(err)
	}
	return file.Upstreams[0].Policy, o
}

const tiered = "llm: {family: openai, cascade: {tiers: [{model: gpt-4o-mini}, {message: We are sorry.}]}}"

// An outage is a simultaneous failure of both models.
type outage struct {
	lines string // settings of the upstream
	fault llmsim.Fault
	away  time.Duration
}

func (o outage) String() string {
	return fmt.Sprint(o.lines, " ", o.fault.Kind, " ", o.fault.Status, " ", o.fault.Hint, " ", o.away)
}

// Both models fail for some time. From 2 s after their return, a model answers.
func TestModelsAnswerAsSoonAsTheyAreBack(t *testing.T) {
	var all []outage
	// The limits of openai follow the provider's headers. An account of another provider that allows this many calls has
	// its own limits.
	for _, lines := range []string{"preset: openai", "preset: anthropic, limits: {rpm: off, itpm: off, otpm: off}", ""} {
		for _, f := range []llmsim.Fault{
			{Kind: llmsim.Error, Status: 500}, {Kind: llmsim.Error, Status: 503}, {Kind: llmsim.Drop}, {Kind: llmsim.Hang},
			{Kind: llmsim.Throttle, NoHint: true}, {Kind: llmsim.Throttle, Hint: time.Second},
		} {
			all = append(all, outage{lines, f, 3 * time.Second}, outage{lines, f, 10 * time.Second}, outage{lines, f, time.Minute})
		}
		all = append(all, outage{lines, llmsim.Fault{Kind: llmsim.Error, Status: 503}, 10 * time.Minute}, outage{lines, llmsim.Fault{Kind: llmsim.Hang}, 10 * time.Minute})
	}
	for _, o := range all[:raced.Of(len(all), 6)] {
		t.Run(o.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comeback(t, o) })
		})
	}
}

// A secondOfCalls counts the calls that started in one second, and those that a model answered.
type secondOfCalls struct{ models, all int }

func comeback(t *testing.T, o outage) {
	lines := tiered
	if o.lines != "" {
		lines = o.lines + ", " + tiered
	}
	p, options := shipped(t, lines)
	model := llmsim.Model{FirstToken: 300 * time.Millisecond, Limits: llmsim.Limits{Requests: llmsim.Rate{N: 10_000}, Tokens: llmsim.Rate{N: 10_000_000}}}
	c := dig(t, llmsim.Config{Default: model}, p, options)
	const before, after = 20 * time.Second, 20 * time.Second
	f := o.fault
	f.For = o.away
	time.AfterFunc(before, func() { c.sim.Fault(f) })
	var mu sync.Mutex
	seconds := make(map[int]secondOfCalls) // since the models' return
	var wg sync.WaitGroup
	for begun := time.Now(); time.Since(begun) < before+o.away+after; {
		at := time.Since(begun) - before - o.away
		wg.Go(func() {
			a, err := c.ask(t.Context(), prompt("gpt-4o", "hi"))
			if err != nil || a.StatusCode != http.StatusOK {
				t.Errorf("%v: %v %v", at, a.Response, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			i := int((at+time.Hour)/time.Second) - 3600
			s := seconds[i]
			if s.all++; a.Header.Get(gateway.TierHeader) != "message" {
				s.models++
			}
			seconds[i] = s
		})
		time.Sleep(time.Second / 12)
		if at > 20*time.Second-o.away && at < -20*time.Second {
			time.Sleep(2 * time.Second) // the middle of a long outage gives no information
		}
	}
	wg.Wait()
	var models, all int
	for i := 2; i < int(after/time.Second); i++ {
		models, all = models+seconds[i].models, all+seconds[i].all
	}
	t.Logf("by a model in seconds 0 to 4: %v, from 2 s on %d of %d", []secondOfCalls{seconds[0], seconds[1], seconds[2], seconds[3], seconds[4]}, models, all)
	if all < 200 || 100*models < 99*all {
		t.Errorf("from 2 s after their return on %d of %d calls were answered by a model", models, all)
	}
}

// If the upstream does not have the model, the next tier is asked. If that does not have it either, the upstream's own
// response is returned. Calls for other models continue.
func TestAModelThatIsNotThereLeadsToTheNextTier(t *testing.T) {
	p, o := shipped(t, "preset: openai, "+tiered)
	c := dig(t, llmsim.Config{Models: map[string]llmsim.Model{"gpt-4o": {}, "gpt-4o-mini": {}}}, p, o)
	for range 20 {
		a, err := c.ask(t.Context(), prompt("gpt-5-turbo-typo", "hi"))
		if err != nil || a.StatusCode != http.StatusOK || a.Header.Get(gateway.TierHeader) != "secondary" || a.Header.Get(gateway.DegradedHeader) != "true" {
			t.Fatalf("%v %q %v", a.Response, a.body, err)
		}
		a, err = c.ask(t.Context(), prompt("gpt-4o", "hi"))
		if err != nil || a.Header.Get(gateway.TierHeader) != "primary" {
			t.Fatalf("%v %v", a.Response, err)
		}
	}
	p, o = shipped(t, "preset: openai, llm: {cascade: {tiers: [{model: gone-too}]}}")
	c = dig(t, llmsim.Config{Models: map[string]llmsim.Model{"gpt-4o": {}}}, p, o)
	a, err := c.ask(t.Context(), prompt("gone", "hi"))
	if err != nil || a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "model_not_found") || !strings.Contains(a.body, "gone") {
		t.Errorf("%v %q %v", a.Response, a.body, err)
	}
}
