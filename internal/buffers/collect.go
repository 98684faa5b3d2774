package buffers

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// spared is the heap size up to which no collection runs. A sidecar produces garbage with each request and holds almost
// nothing. With Go's default, a collection at twice the live heap and at least 4 MiB, it would collect many times a second and
// use a tenth of its CPU or more.
const spared = 32 << 20

// CollectLess delays garbage collection until the heap has 32 MiB, or twice the live heap if that is more. It does nothing if
// GOGC is set. Memory limits still apply.
func CollectLess() {
	if os.Getenv("GOGC") != "" || limit < 4*spared {
		return
	}
	c := &collector{percent: 100, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	c.collected()
}

// A collector runs after each collection and sets the threshold of the next.
type collector struct {
	percent int
	live    []metrics.Sample
}

// collected sets the threshold and registers itself for the next collection.
func (c *collector) collected() {
	metrics.Read(c.live)
	// Changing it stops the world, so small differences are ignored.
	if p := percent(int64(c.live[0].Value.Uint64())); p < c.percent*4/5 || p > c.percent*5/4 {
		c.percent = p
		debug.SetGCPercent(p)
	}
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { c.collected() })
}

// percent returns the GOGC value for a live heap.
func percent(live int64) int {
	live = max(live, 1<<20)
	return int(max(100, (spared-live)*100/live))
}
