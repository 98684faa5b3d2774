package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cmd/weir-demo/chat"
	shop "github.com/seed1158cd35/weir/examples/chat"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// playActs runs acts with a real sidecar and returns their results.
func playActs(t *testing.T, c chat.Config) map[string]chat.Act {
	t.Helper()
	var out bytes.Buffer
	c.Out, c.JSON, c.Sidecar = &out, true, chatSidecar
	if err := chat.Run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	acts := make(map[string]chat.Act)
	for d := json.NewDecoder(&out); d.More(); {
		var a chat.Act
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		acts[a.Name] = a
		if a.Calls == 0 || a.Answered != a.Calls {
			t.Errorf("%s: %d of %d calls were answered", a.Name, a.Answered, a.Calls)
		}
	}
	return acts
}

// Whatever state the models have, each call is answered by the expected tier.
func TestChatAlwaysAnswers(t *testing.T) {
	t.Parallel()
	acts := playActs(t, chat.Config{Act: time.Second, Rate: 20})
	if len(acts) != 5 {
		t.Fatalf("got %d acts", len(acts))
	}
	for _, c := range []struct {
		act  string
		some []string // tiers that must answer
		none []string // tiers that must not
	}{
		{"healthy", []string{"primary"}, []string{"static", "message"}}, // the cache is empty until the first answer, which may take the complete act
		{"throttled", []string{"primary", "cached"}, []string{"static", "message"}},
		{"down", []string{"secondary", "cached"}, []string{"static", "message", "primary"}},
		{"dark", []string{"cached", "static", "message"}, []string{"primary", "secondary"}},
		{"recovery", []string{"cached"}, nil},
	} {
		for _, tier := range c.some {
			if acts[c.act].Tiers[tier] == 0 {
				t.Errorf("%s: no answer is of the tier %s: %v", c.act, tier, acts[c.act].Tiers)
			}
		}
		for _, tier := range c.none {
			if n := acts[c.act].Tiers[tier]; n > 0 {
				t.Errorf("%s: %d answers are of the tier %s", c.act, n, tier)
			}
		}
	}
	for name, a := range acts {
		if a.Primary.Refused+a.Elsewhere.Refused > 0 {
			t.Errorf("%s: %d and %d attempts were beyond the limits", name, a.Primary.Refused, a.Elsewhere.Refused)
		}
	}
	if h := acts["healthy"]; h.Cost <= 0 || h.Primary.Input == 0 || h.Example == nil || h.Example.Header["X-Weir-Tier"] != "primary" {
		t.Errorf("healthy: cost %v, %d tokens, example %+v", h.Cost, h.Primary.Input, h.Example)
	}
	if d := acts["dark"]; d.Degraded == 0 || d.Cost != 0 {
		t.Errorf("dark: %d answers are degraded, they cost %v", d.Degraded, d.Cost)
	}
}

// While everything is down all calls are answered, and few are sent. A test of the dialect counts them in virtual time. Here a
// slow machine may send more before the first failure.
func TestChatLeavesAloneWhatIsDown(t *testing.T) {
	t.Parallel()
	a := playActs(t, chat.Config{Act: 5 * time.Second, Rate: 20, Acts: []string{"dark"}})["dark"]
	if n := a.Primary.All + a.Elsewhere.All; a.Calls != 100 || n >= 100 || n == 0 {
		t.Errorf("%d calls made %d attempts upstream (%d and %d), want 100 calls and fewer attempts", a.Calls, n, a.Primary.All, a.Elsewhere.All)
	}
	t.Logf("%d calls, %d attempts, first words p50 %v ms, p99 %v ms", a.Calls, a.Primary.All+a.Elsewhere.All, a.P50, a.P99)
}

func TestChatEndsWhenTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := newJournal()
	done := make(chan error, 1)
	go func() { done <- run(ctx, world{args: []string{"chat", "-act", "30s"}, out: out, err: io.Discard}) }()
	late := time.After(patience)
	for text := ""; !strings.Contains(text, "All is well"); {
		select {
		case line := <-out:
			text += line
		case <-late:
			t.Fatal("the first act does not begin")
		}
	}
	cancel()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "before the end") {
			t.Errorf("got %v", err)
		}
	case <-late:
		t.Fatal("it does not end")
	}
}

func TestChatRefusesFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range []string{"-act 1ms", "-act 1h", "-rate 0x", "-rate 1", "-rate 1000", "-nope", "more"} {
		var said bytes.Buffer
		err := run(t.Context(), world{args: append([]string{"chat"}, strings.Fields(args)...), out: io.Discard, err: &said})
		if !errors.Is(err, cli.ErrUsage) || !strings.Contains(said.String(), "usage: weir-demo chat") {
			t.Errorf("%s: got %v and %q, want the usage", args, err, said.String())
		}
	}
}

// The demo's configuration is the example's, except for addresses.
func TestChatPlaysTheExample(t *testing.T) {
	data, err := shop.Files.ReadFile("weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := config.Parse("weir.yaml", data, practiceKeys)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = rewired(data, "http://127.0.0.1:1", "http://127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	played, err := config.Parse("weir.yaml", data, practiceKeys)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if played.Listen != "127.0.0.1:0" || played.Admin != "" || len(played.Upstreams) != 2 {
		t.Errorf("got %s, %s, %d upstreams", played.Listen, played.Admin, len(played.Upstreams))
	}
	for i := range played.Upstreams {
		name := played.Upstreams[i].Name
		if !strings.HasPrefix(played.Upstreams[i].URL.Host, "127.0.0.1:") {
			t.Errorf("%s is at %s", name, played.Upstreams[i].URL)
		}
		if got, want := played.LLM[name], whole.LLM[name]; got.KeyEnv != want.KeyEnv || (got.Cascade == nil) != (want.Cascade == nil) ||
			got.Cascade != nil && len(got.Cascade.Tiers) != len(want.Cascade.Tiers) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if c := whole.LLM["chat"].Cascade; c == nil || len(c.Tiers) != 4 {
		t.Errorf("the cascade has not five tiers: %+v", c)
	}
}
