package weircw

import (
	"math"
	"sync/atomic"
	"time"
)

// Durations are counted in classes: 0, below 1 ms, and up to ten minutes in classes that grow by the factor growth. There are
// less than 100, the maximum of the embedded metric format for one metric.
const (
	classes = 98
	growth  = 1.15
)

var perClass = 1 / math.Log(growth)

func class(d time.Duration) int {
	switch {
	case d <= 0:
		return 0
	case d < time.Millisecond:
		return 1
	}
	return min(2+int(math.Log(float64(d)/float64(time.Millisecond))*perClass), classes-1)
}

// middles are the representative milliseconds of each class. The error is at most 7.3%.
var middles = func() (m [classes]float64) {
	m[1] = .5
	for i := 2; i < classes; i++ {
		m[i] = round(math.Pow(growth, float64(i-2)+.5))
	}
	return m
}()

// round keeps four digits. Further digits would lengthen every line without information.
func round(v float64) float64 {
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// A histogram counts durations. It is safe for concurrent use.
type histogram [classes]atomic.Int64

func (h *histogram) observe(d time.Duration) { h[class(d)].Add(1) }

// take returns and resets the counts.
func (h *histogram) take() (s spread, n int64) {
	for i := range h {
		if h[i].Load() == 0 {
			continue
		}
		c := h[i].Swap(0)
		s[i] = c
		n += c
	}
	return s, n
}

// A spread is the number of durations in each class.
type spread [classes]int64

func (s *spread) add(t *spread) {
	for i := range t {
		s[i] += t[i]
	}
}

// weighted returns the values of the spread and their counts.
func (s *spread) weighted() (values, counts []float64) {
	for i, n := range s {
		if n > 0 {
			values, counts = append(values, middles[i]), append(counts, float64(n))
		}
	}
	return values, counts
}

// sample returns at most most values that represent the spread: all values, or values at evenly spaced ranks from the least to
// the greatest.
func (s *spread) sample(most int64) (values []float64) {
	var total int64
	for _, n := range s {
		total += n
	}
	k := min(total, most)
	var i int64 // index of the next of the k values
	var below int64
	for c, n := range s {
		for below += n; i < k && rank(i, k, total) < below; i++ {
			values = append(values, middles[c])
		}
	}
	return values
}

// rank returns the rank of the i-th of k values among total.
func rank(i, k, total int64) int64 {
	if k <= 1 {
		return 0
	}
	return int64(float64(i) * float64(total-1) / float64(k-1))
}
