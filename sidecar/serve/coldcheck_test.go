package serve

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// The check of a store that can lose its memory, or has lost it, states how long rates are then refused: for outage,
// and until they have refilled.
func TestCheckStatesHowLongColdStoreRefuses(t *testing.T) {
	for _, tt := range []struct {
		setting string
		outage  time.Duration
	}{{"", 10 * time.Second}, {", outage: 7s", 10 * time.Second}, {", outage: 5m", 5 * time.Minute}} {
		path := filepath.Join(t.TempDir(), "weir.yaml")
		put(t, path, fmt.Sprintf("store: {redis: %q%s}\nupstreams: {up: {url: %q, limits: {l: {rate: 1/s, burst: 20}}}}\n", servers.Redis(t).URL(), tt.setting, echo(t)))
		file, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		trials := Try(t.Context(), file, Options{})
		store := trials[0]
		if want := fmt.Sprintf("rates for %v (outage)", tt.outage); len(store.Warnings) != 1 || !strings.Contains(store.Warnings[0], want) {
			t.Errorf("outage%s: warnings %q, want %q", tt.setting, store.Warnings, want)
		}
		until, err := time.Parse(time.RFC3339, regexp.MustCompile(`\(up's l\) until ([^;]*);`).FindStringSubmatch(store.Said + "(up's l) until ;")[1])
		if lasts := tt.outage + 20*time.Second; err != nil || until.Before(begin.Add(lasts-time.Second)) || until.After(time.Now().Add(lasts+time.Second)) {
			t.Errorf("outage%s: began at %v, %q, %v", tt.setting, begin, store.Said, err)
		}
	}
}
