package served

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/serve"
)

// Inside is a sidecar in the process of the test.
type Inside struct {
	*serve.Running
	*log
	File  string // its configuration
	Serve Line   // its log line at the start
}

// Begin serves a configuration in the process of the test until the test ends, without environment variables.
func Begin(t testing.TB, yaml string) *Inside {
	t.Helper()
	i := &Inside{log: newLog(t), File: filepath.Join(t.TempDir(), "weir.yaml")}
	if err := os.WriteFile(i.File, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if i.Running, err = serve.Start(i.File, serve.Options{Log: i.log, Env: func(string) (string, bool) { return "", false }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	i.Serve = i.WaitFor("serving")
	return i
}
