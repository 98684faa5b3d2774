package bench

import (
	"encoding/binary"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
)

// New keys, one after the other: the memory of an idle key, the number of calls over a millisecond, and the longest
// stop-the-world pause of the collector. The rows of none create no keys and show the effect of other processes. The difference
// to without-gc is the effect of the collector.
func BenchmarkGrowth(b *testing.B) {
	for _, r := range []struct {
		name string
		keys int
		gc   bool
	}{
		{"none", 0, true},
		{"weir-1000000", 1_000_000, true},
		{"weir-10000000", 10_000_000, true},
		{"weir-10000000-without-gc", 10_000_000, false},
	} {
		b.Run(r.name+"/g=1", func(b *testing.B) {
			for b.Loop() {
				growth(b, r.keys, r.gc)
			}
		})
	}
}

func growth(b *testing.B, keys int, gc bool) {
	if !gc {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	l := plenty()
	l.Scope, l.MaxKeys = "user", max(1, keys)
	registry := must(limit.NewRegistry(0, l))
	bytes, objects := held()
	before := pauses()
	var late int
	var longest time.Duration
	name := []byte("user-000000000000")
	for i := range 10_000_000 {
		began := clock.System.Now()
		if i < keys {
			binary.BigEndian.PutUint64(name[9:], uint64(i))
			registry.Get(began, string(name)).Try(began, 1)
		}
		took := clock.System.Now() - began
		if longest = max(longest, took); took > time.Millisecond {
			late++
		}
	}
	stopped := before.longest()
	b.ReportMetric(float64(late), "over-1ms")
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
	b.ReportMetric(stopped*1e6, "pause-us")
	if n := float64(keys); n > 0 {
		nowBytes, nowObjects := held()
		b.ReportMetric((nowBytes-bytes)/n, "B/key")
		b.ReportMetric((nowObjects-objects)/n, "objects/key")
	}
	runtime.KeepAlive(registry)
}

// held returns the bytes and objects in the heap after a collection.
func held() (bytes, objects float64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.HeapObjects)
}

// paused is a histogram of the collector's stop-the-world pauses.
type paused []uint64

func read() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

func pauses() paused { return append(paused(nil), read().Counts...) }

// longest returns the longest pause since p, in seconds.
func (p paused) longest() (seconds float64) {
	h := read()
	for i, n := range h.Counts {
		if n > p[i] {
			if seconds = h.Buckets[i+1]; math.IsInf(seconds, 1) {
				seconds = h.Buckets[i]
			}
		}
	}
	return seconds
}
