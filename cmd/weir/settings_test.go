package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// weir check -connect warns about servers that may lose data, and does not fail.
func TestCheckConnectWarnsOfServersThatForget(t *testing.T) {
	const evicts, forgets, hides = "maxmemory-policy is", "appendonly and save are off", "the server does not report its"
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"kept", []string{"--appendonly", "yes"}, nil},
		{"kept by snapshots", []string{"--save", "60 1"}, nil},
		{"nothing kept", []string{"--appendonly", "no", "--save", ""}, []string{forgets, "set appendonly yes"}},
		{"evicts", []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"}, []string{evicts + " allkeys-lru", "limits are then exceeded", "set maxmemory-policy noeviction"}},
		{"evicts what expires", []string{"--appendonly", "yes", "--maxmemory-policy", "volatile-ttl"}, []string{evicts + " volatile-ttl"}},
		{"tells by INFO", []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lfu", "--rename-command", "CONFIG", ""}, []string{evicts + " allkeys-lfu"}},
		{"hides save", []string{"--appendonly", "no", "--rename-command", "CONFIG", ""}, []string{hides + " save"}},
		{"hides all", []string{"--rename-command", "CONFIG", "", "--rename-command", "INFO", ""}, []string{hides + " maxmemory-policy, appendonly, save", "check it in the service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := servers.Redis(t, c.args...)
			file := filepath.Join(t.TempDir(), "weir.yaml")
			yaml := "store: {redis: " + server.URL() + "}\nupstreams: {up: {url: http://" + server.Addr() + ", limits: {all: 5/s}}}"
			if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			for try := 0; ; try++ {
				begin := time.Now()
				err := run(t.Context(), world{args: []string{"check", "-connect", file}, out: &out, err: &out, env: noEnv})
				// The server has half a second. Try again if the machine stalled.
				if err != nil && try < 10 && time.Since(begin) >= 500*time.Millisecond && strings.Contains(out.String(), "does not answer") {
					t.Log(out.String())
					out.Reset()
					continue
				}
				if err != nil {
					t.Errorf("%v:\n%s", err, out.String())
				}
				break
			}
			for _, text := range []string{evicts, forgets, hides} {
				if wanted := strings.Contains(strings.Join(c.says, "\n"), text); strings.Contains(out.String(), text) != wanted {
					t.Errorf("it says %q: %v, want %v:\n%s", text, !wanted, wanted, out.String())
				}
			}
			for _, text := range append(c.says, "good  store redis: ") {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, out.String())
				}
			}
		})
	}
}
