package weirprom

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/metric"
)

// looked is the maximum number of keys of a limit that one scrape reads. A limit can have 100,000 keys, and a scrape must stay
// cheap.
const looked = 1000

// completeUpstreams is the number of upstreams up to which all have all their series, so that alerts see the first event of each.
// In a larger file, an upstream has few series before its first call: of 10,000 upstreams, a process calls a few.
const completeUpstreams = 100

// collector is the registered collector: the vectors, the counts of upstreams, and the state of watched upstreams.
type collector struct{ *Metrics }

var gauges = struct {
	configured, current, left, most, held, keys, used, resets, budget, spent, pause, paused, breakers, retries, longest, shadow *prometheus.Desc
}{
	configured: gauge("weir_limit_configured_rate"),
	current:    gauge("weir_limit_current_rate"),
	left:       gauge("weir_limit_units_remaining"),
	most:       gauge("weir_limit_units_max"),
	held:       gauge("weir_limit_reserved_units"),
	keys:       gauge("weir_limit_keys"),
	used:       gauge("weir_quota_used_ratio"),
	resets:     gauge("weir_quota_resets_timestamp_seconds"),
	budget:     gauge("weir_budget_dollars"),
	spent:      gauge("weir_budget_spent_dollars"),
	pause:      gauge("weir_pause_remaining_seconds"),
	paused:     gauge("weir_pauses_active"),
	breakers:   gauge("weir_breakers"),
	retries:    gauge("weir_retry_budget_remaining"),
	longest:    gauge("weir_wait_max_seconds"),
	shadow:     gauge("weir_shadow_decisions_total"),
}

// gauge returns the description of a metric whose values are read during a scrape.
func gauge(name string) *prometheus.Desc {
	m := metric.Get(name)
	return prometheus.NewDesc(name, m.Help, m.Labels, nil)
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.vectors.all() {
		v.Describe(to)
	}
	describeCounts(to)
	g := &gauges
	for _, d := range []*prometheus.Desc{g.configured, g.current, g.left, g.most, g.held, g.keys, g.used, g.resets, g.budget, g.spent, g.pause, g.paused, g.breakers, g.retries, g.longest, g.shadow, keyGauges.left, keyGauges.used} {
		to <- d
	}
	describeFlights(to)
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.vectors.all() {
		v.Collect(to)
	}
	c.mu.Lock()
	watched, show := maps.Clone(c.watched), c.showKey
	c.mu.Unlock()
	few := len(watched) > completeUpstreams
	uncalled := c.collectCounts(to, few)
	collectKeys(to, watched, show)
	for name, u := range watched {
		seen, send := look(u), func(d *prometheus.Desc, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, slices.Insert(labels, 0, name)...)
		}
		seen.collectQuotas(send)
		collectTrials(to, u)
		if few && uncalled[name] && seen.idle() {
			continue
		}
		collectFlights(to, name, seen.view.Flights)
		seen.collect(send)
	}
}

// A sight is the state of an upstream at one moment, with all keys of a limit combined.
type sight struct {
	view   weir.View     // without keys
	wait   time.Duration // the longest allowed wait
	limits map[string]limitSight
	pauses map[string]time.Duration // by operation; "" for pools and the whole upstream
}

// limitSight is the state of a limit at one moment: for each value, the worst of all keys.
type limitSight struct {
	weir.LimitView
	keyed bool  // at least one key was read
	spent int64 // of a budget
}

// look reads the upstream twice: once for the limits themselves, once for their keys.
func look(u *weir.Upstream) sight {
	s := sight{view: u.Look(0), wait: max(0, u.Policy().WithDefaults().MaxWait), limits: make(map[string]limitSight), pauses: make(map[string]time.Duration)}
	for _, p := range s.view.Pauses {
		if p.Limit == "" { // pauses of a limit belong to the limit
			s.pauses[label(p.Operation)] = max(p.Left, s.pauses[label(p.Operation)])
		}
	}
	for _, v := range s.view.Limits {
		s.limits[label(v.Limit.Name)] = limitSight{LimitView: v, keyed: v.Limit.Scope == "", spent: unheld(v.Level)}
	}
	for _, v := range u.Look(looked).Limits {
		if worst, ok := s.limits[label(v.Limit.Name)]; ok {
			s.limits[label(v.Limit.Name)] = worst.and(v)
		}
	}
	return s
}

// unheld returns the units of a budget that are neither left nor held; 0 before the first request to the store.
func unheld(v limit.Level) int64 {
	if v.Age == weir.Never {
		return 0
	}
	return v.Full - v.Left - v.Held
}

func (s limitSight) and(v weir.LimitView) limitSight {
	s.spent = max(s.spent, unheld(v.Level))
	if !s.keyed {
		s.Level, s.keyed = v.Level, true
		return s
	}
	s.Level.PerSecond = min(s.Level.PerSecond, v.Level.PerSecond)
	s.Level.Left = min(s.Level.Left, v.Level.Left)
	s.Level.Paused = max(s.Level.Paused, v.Level.Paused)
	return s
}

// used returns the used fraction of a quota and the end of its window. Before the first request to the store, the use of a shared
// quota is unknown, and used returns 0.
func (s *limitSight) used() (part float64, until time.Time) {
	if s.Level.ResetAt.IsZero() || s.Level.Full <= 0 {
		return 0, s.Limit.Windows(time.Now()).End
	}
	return min(1, max(0, 1-float64(s.Level.Left)/float64(s.Level.Full))), s.Level.ResetAt
}

type emit func(d *prometheus.Desc, v float64, labels ...string)

func (s sight) collect(to emit) {
	for name, l := range s.limits {
		to(gauges.configured, l.Limit.PerSecond(), name)
		to(gauges.current, l.Level.PerSecond, name)
		to(gauges.left, float64(l.Level.Left), name)
		to(gauges.most, float64(l.Level.Full), name)
		to(gauges.held, float64(l.Level.HeldBack), name)
		to(gauges.keys, float64(l.Keys), name)
		to(gauges.pause, l.Level.Paused.Seconds(), "", name)
	}
	for operation, left := range s.pauses {
		to(gauges.pause, left.Seconds(), operation, "")
	}
	to(gauges.paused, float64(s.view.Paused))
	s.collectBreakers(to)
	to(gauges.retries, unbounded(s.view.RetriesLeft))
	to(gauges.longest, s.wait.Seconds())
}

// collectQuotas sends the use of quotas and budgets. It survives restarts, so it matters also before the first call.
func (s sight) collectQuotas(to emit) {
	for name, l := range s.limits {
		if l.Limit.IsBudget() {
			to(gauges.budget, float64(l.Level.Full)/1e6, name)
			to(gauges.spent, float64(l.spent)/1e6, name)
		}
		if l.Limit.IsQuota() {
			used, until := l.used()
			to(gauges.used, used, name)
			to(gauges.resets, float64(until.Unix()), name)
		}
	}
}

// collectTrials sends what limits with shadow would have done.
func collectTrials(to chan<- prometheus.Metric, u *weir.Upstream) {
	for _, t := range u.Trials() {
		for decision, n := range map[string]uint64{weir.DecidedAllowed: t.Allowed, weir.DecidedWaited: t.Waited, "refused": t.Refused} {
			to <- prometheus.MustNewConstMetric(gauges.shadow, prometheus.CounterValue, float64(n), u.Name(), label(t.Limit.Name), decision)
		}
	}
}

// idle reports whether nothing holds calls back. An upstream that was never called has no further series then: a file can
// have 10,000 upstreams, and a process calls few of them.
func (s sight) idle() bool {
	open := func(b breaker.View) bool { return b.Phase != breaker.Closed }
	paused := func(l weir.LimitView) bool { return l.Level.Paused > 0 }
	return s.view.Paused == 0 && len(s.view.Pauses) == 0 && !slices.ContainsFunc(s.view.Breakers, open) && !slices.ContainsFunc(s.view.Limits, paused)
}

func (s sight) collectBreakers(to emit) {
	var n [3]int
	for _, b := range s.view.Breakers {
		n[b.Phase]++
	}
	for phase, n := range n {
		to(gauges.breakers, float64(n), breaker.Phase(phase).String())
	}
}

func unbounded(n int64) float64 {
	if n == math.MaxInt64 {
		return math.Inf(1)
	}
	return float64(n)
}
