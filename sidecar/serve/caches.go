package serve

import (
	"cmp"
	"reflect"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/cache/recordblob"
	"github.com/seed1158cd35/weir/cascade/similar"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// kept is a cache with its configuration.
type kept struct {
	config  config.Cache
	cache   *cache.Cache
	similar *similar.Index // nil if similar questions are not compared
}

// cache returns the cache of an upstream: the existing one if its configuration is unchanged.
func (f *fitting) cache(upstream string, c config.Cache) (*cache.Cache, *similar.Index, error) {
	m, share := f.models, f.share[upstream]
	questions := int64(0)
	if c.Similar > 0 {
		questions = share / 16
		share -= questions
	}
	if k, ok := m.caches[upstream]; ok && reflect.DeepEqual(k.config, c) {
		k.cache.Resize(share)
		if k.similar != nil {
			k.similar.Resize(questions)
		}
		return k.cache, k.similar, nil
	}
	next := kept{config: c}
	if c.Similar > 0 {
		var err error
		if next.similar, err = similar.New(similar.Options{Threshold: c.Similar, MaxBytes: max(1, questions)}); err != nil {
			return nil, nil, err
		}
	}
	o := cache.Options{TTL: c.TTL, StaleWhileRevalidate: c.Revalidate, StaleIfError: c.IfError, MaxBytes: share}
	if m.store != nil {
		o.Shared = recordblob.New(m.store, recordblob.Options{Group: "cache/" + upstream})
	}
	var err error
	if next.cache, err = cache.New(o); err != nil {
		return nil, nil, err
	}
	if k, ok := m.caches[upstream]; ok {
		_ = k.cache.Close()
	}
	m.caches[upstream] = next
	return next.cache, next.similar, nil
}

// shareCaches returns the memory of each upstream's cache in bytes. Together the caches use at most a quarter of the
// memory for bodies.
func (m *models) shareCaches(file *config.File) map[string]int64 {
	share := make(map[string]int64)
	var all int64
	for name, c := range file.LLM {
		if c.Cache != nil {
			share[name] = cmp.Or(c.Cache.Memory, cache.Options{}.WithDefaults().MaxBytes)
			all += share[name]
		}
	}
	for i := range file.Upstreams {
		if u := &file.Upstreams[i]; u.StaleIfError > 0 {
			share[staleName(u.Name)] = staleMemory
			all += staleMemory
		}
	}
	has := buffers.Bodies.Store(all)
	if has < all {
		for name, n := range share {
			share[name] = max(1, int64(float64(n)*float64(has)/float64(all)))
		}
		m.log.Warn("caches are smaller than configured: together they may use a quarter of the memory for bodies, which a larger GOMEMLIMIT raises", "given", all, "has", has)
	}
	return share
}
