package weirprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir"
	sharded "github.com/seed1158cd35/weir/internal/counter"
)

// counted holds the counts of an upstream and the time at which they began.
type counted struct {
	counts *weir.Counts
	since  time.Time
}

// counts records that an upstream was created. The counts of an earlier upstream of the same name are still read, so that no
// series decreases.
func (m *Metrics) counts(c *weir.Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := label(c.Upstream())
	m.counted[name] = append(m.counted[name], counted{c, time.Now()})
}

var counters = struct {
	decisions, attempts, calls, faults, wait, late, attempt, again, call *prometheus.Desc
}{
	decisions: gauge("weir_decisions_total"),
	attempts:  gauge("weir_attempts_total"),
	calls:     gauge("weir_calls_total"),
	faults:    gauge("weir_faults_total"),
	wait:      gauge("weir_wait_seconds"),
	late:      gauge("weir_wait_late_seconds"),
	attempt:   gauge("weir_attempt_duration_seconds"),
	again:     gauge("weir_retry_duration_seconds"),
	call:      gauge("weir_call_duration_seconds"),
}

func describeCounts(to chan<- *prometheus.Desc) {
	c := &counters
	for _, d := range []*prometheus.Desc{c.decisions, c.attempts, c.calls, c.faults, c.wait, c.late, c.attempt, c.again, c.call} {
		to <- d
	}
}

// A sum identifies a series of one upstream, by the labels other than the upstream.
type sum struct {
	d      *prometheus.Desc
	labels [3]string
}

// sums collects the series of a scrape. Names that are not UTF-8 can become equal.
type sums struct {
	counts map[sum]uint64
	spread map[sum]*sharded.Spread
	any    bool // a count is not 0
}

// collectCounts sends the counts of all upstreams, and returns the upstreams without calls. With few, it omits their counts.
func (m *Metrics) collectCounts(to chan<- prometheus.Metric, few bool) (uncalled map[string]bool) {
	m.mu.Lock()
	all, examples := make(map[string][]counted, len(m.counted)), make(map[string]map[string]exemplars)
	for name, c := range m.counted {
		all[name], examples[name] = c[:len(c):len(c)], make(map[string]exemplars)
		for result, e := range m.exemplars[name] {
			examples[name][result] = *e
		}
	}
	m.mu.Unlock()
	uncalled = make(map[string]bool)
	for name, each := range all {
		s := sums{counts: make(map[sum]uint64), spread: make(map[sum]*sharded.Spread)}
		for _, c := range each {
			for n := range c.counts.All() {
				s.add(&n)
			}
		}
		if uncalled[name] = !s.any; few && !s.any {
			continue
		}
		s.send(to, name, each[0].since, examples[name])
	}
	return uncalled
}

// begins reports whether a series is exported while it is 0. A series that first appears with the value 1 shows no increase, so
// an alert would miss the first event. Empty histograms are omitted, except for waits.
func begins(n *weir.Count) bool {
	switch n.What {
	case weir.Attempts, weir.Calls, weir.Faults:
		return true
	case weir.Waits:
		return n.Limit != ""
	case weir.Decisions:
		byLimit := n.Word == weir.DecidedWaited || n.Word == string(weir.RateLimited) || n.Word == string(weir.QuotaExhausted)
		return byLimit == (n.Limit != "")
	}
	return false
}

func (s *sums) add(n *weir.Count) {
	if n.N == 0 && !begins(n) {
		return
	}
	s.any = s.any || n.N > 0
	operation, limit, c := label(n.Operation), label(n.Limit), &counters
	switch n.What {
	case weir.Decisions:
		s.counts[sum{c.decisions, [3]string{operation, limit, n.Word}}] += n.N
	case weir.Faults:
		s.counts[sum{c.faults, [3]string{operation, n.Word}}] += n.N
	case weir.Waits:
		s.time(sum{c.wait, [3]string{limit}}, n)
	case weir.Lates:
		s.time(sum{c.late, [3]string{limit}}, n)
	case weir.Retries:
		s.time(sum{c.again, [3]string{n.Word}}, n)
	case weir.Attempts:
		s.counts[sum{c.attempts, [3]string{operation, n.Word}}] += n.N
		if n.N == 0 {
			return
		}
		s.time(sum{c.attempt, [3]string{operation, n.Word}}, n)
	case weir.Calls:
		s.counts[sum{c.calls, [3]string{operation, n.Word}}] += n.N
		if n.N == 0 {
			return
		}
		s.time(sum{c.call, [3]string{n.Word}}, n)
	}
}

func (s *sums) time(k sum, n *weir.Count) {
	if s.spread[k] == nil {
		s.spread[k] = new(sharded.Spread)
	}
	s.spread[k].Join(n.Took)
}

// labelled is the number of labels of each description, including the upstream.
var labelled = map[*prometheus.Desc]int{
	counters.decisions: 4, counters.attempts: 3, counters.calls: 3, counters.faults: 3, counters.wait: 2, counters.late: 2, counters.attempt: 3, counters.again: 2, counters.call: 2,
}

func (s *sums) send(to chan<- prometheus.Metric, upstream string, since time.Time, of map[string]exemplars) {
	values := func(k sum) []string { return append([]string{upstream}, k.labels[:labelled[k.d]-1]...) }
	for k, n := range s.counts {
		to <- prometheus.MustNewConstMetricWithCreatedTimestamp(k.d, prometheus.CounterValue, float64(n), since, values(k)...)
	}
	for k, spread := range s.spread {
		h := newRead(k.d, spread, since, values(k)...)
		if k.d == counters.call {
			h.exemplars = of[k.labels[0]]
		}
		to <- h
	}
}

// A read is a histogram for a scrape: classic, with the bounds of buckets, and native for servers that request it.
type read struct {
	prometheus.Metric
	classic []*dto.Bucket

	exemplars exemplars
}

// mostBuckets is the maximum number of native buckets in a series. A series that exceeds it gets wider buckets.
const mostBuckets = 160

// smallest is the zero threshold in seconds: only 0 itself counts as zero.
const smallest = prometheus.DefNativeHistogramZeroThreshold

func newRead(d *prometheus.Desc, s *sharded.Spread, since time.Time, labels ...string) *read {
	var h read
	atMost := s.AtMost()
	for i, bound := range sharded.Bounds {
		h.classic = append(h.classic, &dto.Bucket{CumulativeCount: new(atMost[i]), UpperBound: new(bound.Seconds())})
	}
	schema, native := int32(sharded.Schema), make(map[int]int64)
	for i, n := range s.Buckets {
		native[i] += int64(n)
	}
	for ; len(native) > mostBuckets; schema-- {
		wider := make(map[int]int64)
		for i, n := range native {
			wider[(i+1)>>1] += n
		}
		native = wider
	}
	h.Metric = prometheus.MustNewConstNativeHistogram(d, s.Count, s.Seconds(), native, nil, s.Zero, schema, smallest, since, labels...)
	return &h
}

func (h *read) Write(to *dto.Metric) error {
	err := h.Metric.Write(to)
	to.Histogram.Bucket = h.classic
	h.exemplars.put(to.Histogram)
	return err
}
