package buffers

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// spared is how large the heap may become before memory is collected. A sidecar makes garbage with each request
// and holds next to nothing: by Go's own measure, twice what is held and 4 MiB at least, it would collect many times a
// second, for a tenth and more of its processor time.
const spared = 32 << 20

// CollectLess has memory collected when the heap is 32 MiB, or twice what is held if that is more, unless GOGC says
// when. Limits of memory hold nevertheless.
func CollectLess() {
	if os.Getenv("GOGC") != "" || limit < 4*spared {
		return
	}
	c := &collector{percent: 100, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	c.collected()
}

// A collector is told of each collection, and says when the next one is.
type collector struct {
	percent int
	live    []metrics.Sample
}

// collected sets when the next collection is, and has itself called by it.
func (c *collector) collected() {
	metrics.Read(c.live)
	// Setting it stops all goroutines for a moment, so a little more or less is left alone.
	if p := percent(int64(c.live[0].Value.Uint64())); p < c.percent*4/5 || p > c.percent*5/4 {
		c.percent = p
		debug.SetGCPercent(p)
	}
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { c.collected() })
}

// percent is how much more than what is held may be there before memory is collected.
func percent(live int64) int {
	live = max(live, 1<<20)
	return int(max(100, (spared-live)*100/live))
}
