package gateway_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// meta returns the metadata of an answer without streaming.
func (a answer) meta(t *testing.T) map[string]string {
	t.Helper()
	var v struct{ Metadata map[string]string }
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return v.Metadata
}

// Each of several messages appears after some time. The answer contains the message's index and the contact.
func TestMessagesAreSaidAtRandom(t *testing.T) {
	texts := []string{"One moment, please.", "We are sorry.", "Try again soon."}
	c, all := tiers(t, gateway.Tier{Messages: texts, Contact: "help@example.com"})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Times: -1})
	said := make(map[string]int)
	for range 200 {
		a := b.chat("hi")
		i, err := strconv.Atoi(a.meta(t)["weir_message_index"])
		if err != nil || i < 0 || i >= len(texts) {
			t.Fatalf("the index is none: %s", a.body)
		}
		if want := texts[i] + "\n\nhelp@example.com"; a.says(t) != want || a.meta(t)["weir_contact"] != "help@example.com" {
			t.Fatalf("message %d is %s", i, a.body)
		}
		said[texts[i]]++
	}
	if len(said) != len(texts) {
		t.Errorf("of 200 answers these were said: %v", said)
	}
}

// During maintenance no model is called, not even to refresh an answer. Cached answers are used, and everything else
// gets the message.
func TestMaintenanceAsksNoModel(t *testing.T) {
	kept := newCache(t, cache.Options{TTL: 1})
	o := func(m *gateway.Maintenance) setup {
		c, all := tiers(t, gateway.Tier{Model: "gpt-4o-mini"}, gateway.Tier{Cached: true}, gateway.Tier{Messages: []string{"We are sorry."}, Contact: "help@example.com"})
		return setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all, Cache: kept, Maintenance: m}}
	}
	start(t, o(nil)).chat("is it there?")
	b := start(t, o(&gateway.Maintenance{Message: "We are moving.", Reduced: []string{"chat", "uploads"}}))
	for _, tt := range []struct{ ask, tier, says string }{
		{"is it there?", "cached", "gpt-4o heard: is it there?"},
		{"is it new?", "tier3", "We are moving.\n\nhelp@example.com"},
	} {
		a := b.chat(tt.ask)
		b.wants(a, gateway.TierHeader, tt.tier)
		b.wants(a, gateway.ReducedHeader, "chat, uploads")
		if got := a.meta(t); a.says(t) != tt.says || got["weir_reduced"] != "chat, uploads" || got["weir_tier"] != tt.tier ||
			got["weir_degraded"] != a.Header.Get(gateway.DegradedHeader) || (got["weir_maintenance"] == "true") != (tt.tier == "tier3") {
			t.Errorf("%s: %s", tt.ask, a.body)
		}
	}
	b.wants(b.chat("is it newer?"), gateway.DegradedHeader, "true")
	if n := len(b.sim.Log()); n != 0 {
		t.Errorf("%d calls came to the provider under maintenance", n)
	}
}

// A list of features without a message only adds the header and metadata to answers.
func TestReducedFeaturesAreTold(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all, Maintenance: &gateway.Maintenance{Reduced: []string{"search"}}}})
	a := b.chat("hi")
	b.wants(a, gateway.TierHeader, "primary")
	b.wants(a, gateway.ReducedHeader, "search")
	if strings.Contains(a.body, "weir_") {
		t.Errorf("a model's own answer is marked: %s", a.body)
	}
}

// The body of a cached answer contains its tier, in every format.
func TestCachedAnswersSayTheirTier(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	const want = `"metadata":{"weir_confidence":"1","weir_degraded":"false","weir_tier":"cached"}`
	for i, asks := range [][2]func(string, ...string) answer{{b.chat, b.chat}, {b.chat, b.stream}, {b.stream, b.stream}, {b.stream, b.chat}} {
		text := fmt.Sprint("question ", i)
		first, a := asks[0](text), asks[1](text)
		b.wants(a, gateway.CacheHeader, "hit")
		if strings.Count(a.body, want) != 1 || a.says(t) != first.says(t) || a.err != nil || int64(len(a.body)) != a.ContentLength {
			t.Errorf("%d: %s", i, a.body)
		}
	}
}
