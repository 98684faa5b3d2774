package inflight

import (
	"math/bits"
	"slices"
	"time"
)

// A histogram counts durations in buckets of 1/32 of an octave. So the median of any number of durations takes the
// same memory, 3.5 KiB, and is at most 3% too long (similar to an HDR histogram). The zero histogram is empty.
type histogram struct {
	n       uint32
	buckets [896]uint32
}

const (
	finest = 10 // a bucket is at least 2^10 ns wide
	steps  = 32 // per octave
)

// bucketOf returns the bucket of a duration. Negative durations are in the first bucket. The last one begins at more
// than an hour and has no upper end.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0)) >> finest
	e := max(0, bits.Len64(v)-6)
	return min(steps*e+int(v>>e), len(histogram{}.buckets)-1)
}

// top returns the longest duration of a bucket, so that a constant duration is never above its own median.
func top(bucket int) time.Duration {
	e := max(0, bucket/steps-1)
	v := uint64(bucket - steps*e)
	return time.Duration((v+1)<<e<<finest) - 1
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.n++
}

func (h *histogram) reset() {
	if h.n > 0 {
		*h = histogram{}
	}
}

// median returns at least the true median; 0 if there are no durations.
func (h *histogram) median() time.Duration {
	left := h.n / 2
	for i, n := range h.buckets {
		if n > left {
			return top(i)
		}
		left -= n
	}
	return 0
}

// A few contains the latest durations, exactly.
type few struct {
	n     int
	times [10]time.Duration
}

func (f *few) add(d time.Duration) {
	f.times[f.n%len(f.times)] = d
	f.n++
}

func (f *few) len() int { return min(f.n, len(f.times)) }

// median returns the median, the upper one of an even number. There must be a duration.
func (f *few) median() time.Duration {
	sorted := f.times
	all := sorted[:f.len()]
	slices.Sort(all)
	return all[len(all)/2]
}
