package serve

import (
	"cmp"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// shareCaches is how much memory the cache of each upstream has, by what the file gives them. Together they have
// a quarter at most of what the process may hold of bodies.
func (m *models) shareCaches(file *config.File) map[string]int64 {
	share := make(map[string]int64)
	var all int64
	for name, c := range file.LLM {
		if c.Cache != nil {
			share[name] = cmp.Or(c.Cache.Memory, cache.Options{}.WithDefaults().MaxBytes)
			all += share[name]
		}
	}
	has := buffers.Bodies.Store(all)
	if has < all {
		for name, n := range share {
			share[name] = max(1, int64(float64(n)*float64(has)/float64(all)))
		}
		m.log.Warn("caches have less memory than the file gives them: all of them have a quarter of what the process may hold of bodies, which a larger GOMEMLIMIT raises", "given", all, "has", has)
	}
	return share
}
