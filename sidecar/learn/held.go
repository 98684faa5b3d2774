package learn

import (
	"math"
	"time"
)

// held records the highest usage without a throttle, and the calls in flight.
type held struct {
	second int64 // current second
	ring   [60]tick
	best   [len(windows)]peak
	busy   float64 // most calls in flight during a minute, on average
}

// windows are the lengths, in seconds, for which the highest usage is reported.
var windows = [...]int{1, 10, 60}

// A tick is a second.
type tick struct {
	amount    float64
	busy      float64
	throttled bool
}

// A peak is the highest rate of a window.
type peak struct {
	rate float64
	at   time.Time
}

func (h *held) add(at int64, amount float64, throttled bool, took time.Duration) {
	h.pass(at / int64(time.Second))
	t := &h.ring[h.second%60]
	t.amount += amount
	t.busy += took.Seconds()
	t.throttled = t.throttled || throttled
}

// pass closes the seconds before s.
func (h *held) pass(s int64) {
	if h.second == 0 || s-h.second > 60 {
		if h.second != 0 {
			h.close()
		}
		h.clear()
		h.second = s
		return
	}
	for h.second < s {
		h.close()
		h.second++
		h.ring[h.second%60] = tick{}
	}
}

func (h *held) clear() {
	h.ring = [60]tick{}
	h.second = 0
}

// close evaluates the windows that end with the current second.
func (h *held) close() {
	sum, busy, clean := 0.0, 0.0, true
	next := 0
	for back := range int64(60) {
		t := &h.ring[((h.second-back)%60+60)%60]
		sum, busy = sum+t.amount, busy+t.busy
		clean = clean && !t.throttled
		if int(back)+1 != windows[next] {
			continue
		}
		if rate := sum / float64(windows[next]); clean && rate > h.best[next].rate {
			h.best[next] = peak{rate, time.Unix(h.second, 0).UTC()}
		}
		next++
	}
	h.busy = max(h.busy, busy/60)
}

// took records the durations of attempts.
type took struct {
	n     int64
	sum   float64
	class [80]int64 // 2^(1/4) wide; the first is up to one millisecond
}

func (t *took) add(d time.Duration) {
	if d <= 0 {
		return
	}
	t.n++
	t.sum += d.Seconds()
	i := 0
	if d > time.Millisecond {
		i = min(len(t.class)-1, 1+int(4*math.Log2(float64(d)/float64(time.Millisecond))))
	}
	t.class[i]++
}

func (t *took) mean() float64 {
	if t.n == 0 {
		return 0
	}
	return t.sum / float64(t.n)
}

// slow returns the 99th percentile of the durations, in seconds.
func (t *took) slow() float64 {
	left := t.n - t.n/100
	for i, n := range t.class {
		if left -= n; left <= 0 {
			return 0.001 * math.Pow(2, float64(i)/4)
		}
	}
	return 0
}
