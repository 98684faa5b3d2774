package weircw

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
)

// A batch is the counts of an interval.
type batch struct {
	at   time.Time // the end of the interval
	rows []*row
}

// points returns the number of values in the batch.
func (b *batch) points() (n int64) {
	for _, r := range b.rows {
		n += int64(len(r.values))
	}
	return n
}

// A row is the metrics that have the same dimensions.
type row struct {
	dimensions []pair
	values     []value
}

type pair struct{ name, value string }

// A value is a metric's value: a number, or a spread of durations.
type value struct {
	metric Metric
	name   string
	number float64
	spread *spread
}

// A table arranges counts in rows.
type table struct {
	config *Config
	static []pair
	rows   map[string]*row
}

// add adds a value to the row of each set of the metric. at has the values of dimensions by index, "" if unknown.
func (s *table) add(m Metric, at *[len(Dimensions)]string, v value) { s.addSets(m, 0, at, v) }

// addSets is add for the events of a kind. Refusals are counted by limit and by reason. Sets of AcquisitionFailures with a limit
// use the former, the other sets use the latter.
func (s *table) addSets(m Metric, k kind, at *[len(Dimensions)]string, v value) {
	n := s.config.Metrics[m]
	if n.Off {
		return
	}
	v.metric, v.name = m, n.Name
	for _, set := range n.Sets {
		if m != AcquisitionFailures || slices.Contains(set, Limit) == (k == limited) {
			s.row(set, at).add(v)
		}
	}
}

func (s *table) row(set Set, at *[len(Dimensions)]string) *row {
	pairs := slices.Clone(s.static)
	var id strings.Builder
	for _, d := range set {
		if d == ErrorCode && at[Success.index()] == "true" {
			continue // the attempt did not fail
		}
		pairs = append(pairs, pair{s.config.Names[d], dimensionValue(at[d.index()])})
	}
	for _, p := range pairs {
		id.WriteString(p.name + "\x00" + p.value + "\x00")
	}
	r := s.rows[id.String()]
	if r == nil {
		r = &row{dimensions: pairs}
		s.rows[id.String()] = r
	}
	return r
}

// add adds up counts and spreads. For remaining units, outages of the store, ages, breakers and unavailable cascades it keeps the
// worst value.
func (r *row) add(v value) {
	for i := range r.values {
		if w := &r.values[i]; w.metric == v.metric {
			w.merge(v)
			return
		}
	}
	if v.spread != nil {
		v.spread = new(*v.spread)
	}
	r.values = append(r.values, v)
}

func (w *value) merge(v value) {
	switch {
	case v.spread != nil:
		w.spread.add(v.spread)
	case v.metric == TokensAvailable:
		w.number = min(w.number, v.number)
	case v.metric == ModelChainDown, v.metric == CircuitBreakerState:
		w.number = max(w.number, v.number)
	case v.metric == DeadLetterAge:
		w.number = max(w.number, v.number)
	default:
		w.number += v.number
	}
}

// list returns the rows in a stable order.
func (s *table) list() []*row {
	rows := make([]*row, 0, len(s.rows))
	for _, r := range s.rows {
		slices.SortFunc(r.values, func(a, b value) int { return cmp.Compare(a.metric.index(), b.metric.index()) })
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return slices.CompareFunc(a.dimensions, b.dimensions, func(p, q pair) int {
			return cmp.Or(cmp.Compare(p.name, q.name), cmp.Compare(p.value, q.value))
		})
	})
	return rows
}

func (m Metric) index() int { return slices.Index(Metrics[:], m) }

// collect returns and resets the counts. It adds the dead letters and the unavailable cascades.
func (e *Exporter) collect(dead []delivery.Count, down []string) batch {
	s := &table{config: &e.config, static: e.static, rows: make(map[string]*row)}
	for _, l := range e.book.leaves() {
		e.collectLeaf(s, l)
	}
	e.collectFallback(s)
	for _, u := range e.upstreams() {
		e.collectLimits(s, u)
	}
	for _, u := range e.watched {
		collectBreakers(s, u)
	}
	collectDead(s, dead)
	e.collectDown(s, down)
	return batch{at: time.Now(), rows: s.list()}
}

func (e *Exporter) collectLeaf(s *table, l *leaf) {
	at := e.at(&l.key)
	if l.waits == nil {
		if n := l.n.Swap(0); n > 0 {
			number := float64(n)
			if l.key.kind == cost {
				number /= Picos
			}
			for _, m := range metrics[l.key.kind] {
				s.addSets(m, l.key.kind, &at, value{number: number})
			}
		}
		return
	}
	waits, n := l.waits.take()
	if n == 0 {
		return
	}
	switch l.key.kind {
	case timed:
		s.add(APICallLatency, &at, value{spread: &waits})
	case asked:
		s.add(AcquisitionLatency, &at, value{spread: &waits})
	default:
		s.add(Acquisitions, &at, value{number: float64(n)})
		s.add(AcquisitionWait, &at, value{spread: &waits})
	}
}

// at returns the values of a key's dimensions.
func (e *Exporter) at(k *key) (at [len(Dimensions)]string) {
	put := func(d Dimension, v string) { at[d.index()] = v }
	put(Upstream, k.upstream)
	put(Operation, k.operation)
	put(Region, cmp.Or(k.region, e.config.Region))
	put(Account, k.account)
	put(Limit, k.word)
	put(ErrorCode, k.word)
	put(ErrorType, k.word)
	if k.kind != limited {
		put(Reason, k.word)
	}
	put(Tier, k.word)
	put(Attempt, attempts(k.attempt))
	if k.operation == other && k.word == other && k.attempt == 0 {
		put(Attempt, other)
	}
	put(Success, strconv.FormatBool(k.success))
	return at
}

func attempts(n uint8) string {
	switch {
	case n == 0:
		return none
	case n >= 10:
		return "10+"
	}
	return strconv.Itoa(int(n))
}

// collectFallback adds one for each interval in which the store was unavailable.
func (e *Exporter) collectFallback(s *table) {
	away := e.away.Load()
	n := e.activated.Swap(0)
	if n == 0 && (away || e.wasAway) {
		n = 1
	}
	e.wasAway = away
	if n > 0 {
		s.add(FallbackActivated, new([len(Dimensions)]string), value{number: float64(n)})
	}
}

// looked is the maximum number of keys of a limit that are read: a limit can have 100,000.
const looked = 1000

func (e *Exporter) collectLimits(s *table, u *weir.Upstream) {
	for _, l := range u.Look(looked).Limits {
		if l.Limit.Scope != "" && l.Key == "" {
			continue // calls without a key, of a limit with keys
		}
		var at [len(Dimensions)]string
		at[Upstream.index()], at[Limit.index()] = u.Name(), l.Limit.Name
		s.add(TokensAvailable, &at, value{number: float64(max(0, l.Level.Left))})
	}
}

// collectBreakers adds the worst state of the upstream's breakers, unless all are closed.
func collectBreakers(s *table, u *weir.Upstream) {
	worst := 0.0
	for _, b := range u.Breakers() {
		switch b.State().Phase {
		case breaker.Open:
			worst = 2
		case breaker.HalfOpen:
			worst = max(worst, 1)
		case breaker.Closed:
		}
	}
	if worst > 0 {
		var at [len(Dimensions)]string
		at[Upstream.index()] = u.Name()
		s.add(CircuitBreakerState, &at, value{number: worst})
	}
}
