package serve

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// free returns an unused address.
func free(t *testing.T) string { return fmt.Sprint("127.0.0.1:", servers.Port(t)) }

// A failed start leaves nothing open, so that the program can retry.
func TestAStartThatFailsLeavesNothingOpen(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, admin := range map[string]bool{"admin is busy": true, "decide is busy": false} {
		t.Run(name, func(t *testing.T) {
			calls, other := free(t), free(t)
			dir := t.TempDir()
			path := filepath.Join(dir, "weir.yaml")
			write := func(admin, decide string) {
				yaml := "listen: " + calls + "\nadmin: " + admin + "\ndecide: {listen: " + decide + ", open: true}\nstore: {file: " + filepath.Join(dir, "store") + "}\nupstreams:\n  u: {url: \"http://127.0.0.1:1\"}\n"
				if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if admin {
				write(busy.Addr().String(), other)
			} else {
				write("off", busy.Addr().String())
			}
			if _, err := Start(path, Options{}); err == nil {
				t.Fatal("it started where somebody else listens")
			}
			write("off", other)
			r, err := Start(path, Options{})
			if err != nil {
				t.Fatalf("the next start: %v", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every failed start returns an error with the cause.
func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "store")
	if err := os.WriteFile(open, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, yaml := range map[string]string{
		"a store that others read": "store: {file: " + open + "}\n",
		"a store that is none":     "store: {file: " + dir + "}\n",
		"no certificate":           "tls: {cert: " + dir + "/none.pem, key: " + dir + "/none.key}\n",
		"no rules":                 "decide: {grpc: \"127.0.0.1:0\", rules: " + dir + "/none.yaml, open: true}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.yaml")
			if err := os.WriteFile(path, []byte("listen: 127.0.0.1:0\nadmin: off\n"+yaml+"upstreams:\n  u: {url: \"http://127.0.0.1:1\"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Start(path, Options{})
			if err == nil {
				_ = r.Close()
				t.Fatal("it started")
			}
			t.Log(err)
		})
	}
}
