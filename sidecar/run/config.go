package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// writeConfig writes a configuration with all presets that have fixed hosts. Named presets come first, so they win
// their hosts. The limits are a budget of each run, over all upstreams; "" means none.
func writeConfig(dir string, named []string, limits string) (path string, err error) {
	var b strings.Builder
	b.WriteString("drain: 2s\n")
	if limits != "" {
		parsed, err := parseBudget(limits)
		if err != nil {
			return "", err
		}
		parsed.write(&b)
	}
	b.WriteString("upstreams:\n")
	all := config.Presets()
	for _, name := range named {
		if !slices.Contains(all, name) {
			return "", fmt.Errorf("unknown preset %q: \"weir presets\" lists them", name)
		}
		if len(config.PresetHosts(name)) == 0 {
			return "", fmt.Errorf("preset %q has no fixed hosts: write a file with the upstream's url, and name it with --config", name)
		}
	}
	for _, name := range slices.Concat(named, slices.DeleteFunc(all, func(s string) bool { return slices.Contains(named, s) })) {
		hosts := config.PresetHosts(name)
		if len(hosts) == 0 {
			continue
		}
		// The host of a connection replaces the host of url, so any host of the preset works.
		fmt.Fprintf(&b, "  %s: {preset: %[1]s, url: \"https://%s\"", name, strings.ReplaceAll(hosts[0], "*", "any"))
		if limits != "" && !config.PresetHasModels(name) { // language models count callers by default
			b.WriteString(", callers: true")
		}
		b.WriteString("}\n")
	}
	path = filepath.Join(dir, "weir.yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}
