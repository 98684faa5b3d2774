//go:build linux

package supply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// compose.yaml refers to files that exist, publishes ports on loopback only, and its weir and store have the addresses of its services.
func TestComposeFileFitsItsConfiguration(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image   string
			Build   struct{ Context, Dockerfile string }
			Command []string
			Volumes []string
			Ports   []string
			Depends map[string]struct{ Condition string } `yaml:"depends_on"`
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 4 {
		t.Fatalf("got %d services, want 4", len(file.Services))
	}
	for name, s := range file.Services {
		if _, err := os.Stat(filepath.Join(root, s.Build.Dockerfile)); err != nil || s.Image == "" && s.Build.Dockerfile == "" {
			t.Errorf("%s: image %q, Dockerfile %q: %v", name, s.Image, s.Build.Dockerfile, err)
		}
		for _, v := range s.Volumes {
			if _, err := os.Stat(filepath.Join(root, strings.Split(v, ":")[0])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s, which other machines reach", name, p)
			}
		}
		for other := range s.Depends {
			if _, known := file.Services[other]; !known {
				t.Errorf("%s depends on %s, which is not there", name, other)
			}
		}
	}
	weir := loaded(t, "deploy/compose/weir.yaml")
	for _, address := range []string{weir.Store.Redis, weir.Upstreams[0].URL.String()} {
		_, host, _ := strings.Cut(address, "://")
		host, _, _ = strings.Cut(host, ":")
		if _, known := file.Services[host]; !known {
			t.Errorf("%s is not an address of a service", address)
		}
	}
	if docker := text(t, "deploy/compose/Dockerfile"); !strings.Contains(docker, "\nFROM scratch\n") || !strings.Contains(docker, "\nUSER 65532:65532\n") || !strings.Contains(docker, "-tags grpcnotrace,image ") {
		t.Errorf("the Dockerfile is\n%s", docker)
	}
}
