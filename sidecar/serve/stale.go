package serve

import (
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// staleMemory is the memory for the stored answers of an upstream, in bytes.
const staleMemory = 64 << 20

// staleName is the name under which an upstream's stored answers share the cache memory. No upstream has a slash in its
// name.
func staleName(upstream string) string { return upstream + "/stale" }

// keepAnswers sets the stored answers of upstreams with stale_if_error. An unchanged setting keeps them.
func (m *models) keepAnswers(file *config.File, share map[string]int64) error {
	next := make(map[string]keptAnswers)
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		if u.StaleIfError <= 0 {
			continue
		}
		most := share[staleName(u.Name)]
		k, ok := m.answers[u.Name]
		if ok && k.age == u.StaleIfError {
			k.cache.Resize(most)
		} else {
			c, err := cache.New(cache.Options{TTL: u.StaleIfError, StaleWhileRevalidate: -1, StaleIfError: -1, MaxBytes: most, MaxEntry: int(min(most, mostAnswer))})
			if err != nil {
				return err
			}
			k = keptAnswers{c, u.StaleIfError}
		}
		next[u.Name] = k
		u.Answers, u.Replayed = k.cache, m.replayed
	}
	m.answers = next // a cache without a store needs no Close
	return nil
}

// mostAnswer limits the size of a stored answer with its headers.
const mostAnswer = 1<<20 + 64<<10

// keptAnswers holds the stored answers of an upstream, and their highest age.
type keptAnswers struct {
	cache *cache.Cache
	age   time.Duration
}

// replayed counts a failed call that got a stored answer, and adds it to the call's record.
func (m *models) replayed(r proxy.Replayed) {
	m.metrics.Replayed(r.Upstream, r.Cause)
	m.calls.Replayed(r.ID, r.Upstream, r.Age)
}
