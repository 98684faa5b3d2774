package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeAcceptsRemovedFieldsWithWarning(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, "http://127.0.0.1:1", `traces: {url: "http://127.0.0.1:1", jaeger: "http://127.0.0.1:2"}`)
	s := startFile(t, file)
	const msg = "setting is removed or renamed"
	check := func(field, instead string) {
		t.Helper()
		line := s.log.waitFor(t, msg)
		if at, _ := line["at"].(string); line["field"] != field || !strings.Contains(line["instead"].(string), instead) || !strings.HasSuffix(at, "weir.yaml:3") {
			t.Errorf("got %v, want field %s and what to use instead", line, field)
		}
	}
	check("traces.jaeger", "look up traces in Jaeger")
	write(t, file, "http://127.0.0.1:1", `store: {memory: true, coast: 1s}`)
	s.reload <- os.Interrupt
	check("store.coast", "store.outage")
}
