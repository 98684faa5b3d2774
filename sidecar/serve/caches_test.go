package serve

import (
	"io"
	"log/slog"
	"testing"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// Together the caches use at most a quarter of the memory for bodies, each in proportion to its configuration. The rest
// stays available.
func TestCachesShareWhatThereIs(t *testing.T) {
	m := &models{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	file := &config.File{LLM: map[string]config.LLM{"a": {Cache: &config.Cache{Memory: 3 << 40}}, "b": {Cache: &config.Cache{Memory: 1 << 40}}, "c": {}}}
	before, _, _ := buffers.Bodies.Use()
	share := m.shareCaches(file)
	most := buffers.Bodies.Total() / 4
	if all := share["a"] + share["b"]; all > most || all < most-10 || share["a"]/share["b"] != 3 || len(share) != 2 {
		t.Errorf("%v, of %d", share, most)
	}
	if used, _, _ := buffers.Bodies.Use(); used != before+most {
		t.Errorf("%d are held, %d before", used, before)
	}
	file.LLM = map[string]config.LLM{"a": {Cache: &config.Cache{Memory: 1 << 20}}}
	if share = m.shareCaches(file); share["a"] != 1<<20 {
		t.Errorf("%v", share)
	}
	if m.shareCaches(&config.File{}); true {
		if used, _, _ := buffers.Bodies.Use(); used != before {
			t.Errorf("%d are held, %d before", used, before)
		}
	}
}
