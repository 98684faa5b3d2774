package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
)

const twoModels = `
callers: {limits: {user: {rate: 7/s, scope: user}, user-day: off, global: off}}
upstreams:
  a:
    url: "https://a.example"
    keys: {tenant: "header:X-Tenant"}
    llm:
      cache: true
      cascade: {tiers: [{message: "Sorry."}]}
  b: {url: "https://b.example", llm: {}}
`

// An error in the second of two upstreams does not change the first.
func TestABadFileOfModelsChangesNothing(t *testing.T) {
	env := func(string) (string, bool) { return "", false }
	load := func(text string) *config.File {
		t.Helper()
		path := filepath.Join(t.TempDir(), "weir.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(path, env)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var m models
	m.begin(new(Server), weir.Events{}, prometheus.NewRegistry())
	t.Cleanup(m.close)
	if err := m.apply(load(twoModels), env); err != nil {
		t.Fatal(err)
	}
	had := m.caches["a"].cache
	bad := strings.NewReplacer("7/s", "9/s", "cache: true", "cache: {ttl: 1m}", `{message: "Sorry."}`, `{name: x, message: "x"}, {message: "Sorry."}`,
		`b: {url: "https://b.example", llm: {}}`, `b: {url: "https://b.example", llm: {key_env: NOT_SET}}`).Replace(twoModels)
	err := m.apply(load(bad), env)
	if err == nil || !strings.Contains(err.Error(), "upstream b: llm: key_env: environment variable NOT_SET is not set") {
		t.Fatalf("the error is %v", err)
	}
	if n := len(m.cascades["a"].Config().Tiers); n != 2 {
		t.Errorf("the cascade has %d tiers, want those of before", n)
	}
	if m.caches["a"].cache != had {
		t.Error("there is another cache")
	}
	if got := m.callers.Policy().Limits[0].Amount; got != 7 {
		t.Errorf("callers have %d", got)
	}
	if err := m.apply(load(`upstreams: {c: {url: "https://c.example"}}`), env); err != nil || m.callers != nil || len(m.caches)+len(m.cascades) > 0 {
		t.Errorf("%v, and %v, %v, %v are left", err, m.callers, m.caches, m.cascades)
	}
}

func TestAChainIsDownIfNoModelOfItIsAsked(t *testing.T) {
	tiers := []weirprom.TierState{{Upstream: "a", Tier: "first"}, {Upstream: "a", Tier: "second", Open: true}, {Upstream: "b", Tier: "first", Open: true}, {Upstream: "b", Tier: "second", Open: true}}
	if got := chainsDown(slices.Values(tiers)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("down are %v, want b", got)
	}
}
