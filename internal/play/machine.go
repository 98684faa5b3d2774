package play

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A Machine is the upstream of a story. It is safe for concurrent use.
type Machine struct {
	clock clock.Clock
	start time.Duration
	story *Story
	takes time.Duration

	mu       sync.Mutex
	rand     *rand.Rand
	free     []time.Duration // since the start, the time at which each worker becomes free
	warm     []time.Duration // by key, the time of the last answer
	limits   []meter
	seconds  []Work
	counts   Traffic
	arrivals []time.Duration // of attempts, if keeps is set
	keeps    bool
}

// Work is the work of a machine in a second.
type Work struct {
	Useful int `json:"useful"` // calls whose callers still waited
	Wasted int `json:"wasted"` // calls whose callers had disconnected
}

// Traffic counts attempts that reached a machine.
type Traffic struct {
	Sent      int `json:"sent"`
	Throttled int `json:"throttled"` // beyond the machine's limit
	Failed    int `json:"failed"`    // the machine was down, or its queue was full
}

// A meter is a limit of a machine during a time.
type meter struct {
	from, to time.Duration
	line     bucket.Line
	state    bucket.State
}

// NewMachine returns the machine of a story that begins now.
func NewMachine(c clock.Clock, r *rand.Rand, s *Story) *Machine {
	n, takes := s.Machine.workers()
	m := &Machine{
		clock: c, start: c.Now(), story: s, takes: takes, rand: r,
		free: make([]time.Duration, n), warm: make([]time.Duration, s.Machine.Keys.Count),
		seconds: make([]Work, s.Length/time.Second),
	}
	for i := range s.Troubles {
		if t := &s.Troubles[i]; t.Kind == Limit {
			m.limits = append(m.limits, newMeter(t.From, t.To, t.Rate))
		}
	}
	if s.Machine.Limit != (bucket.Rate{}) {
		m.limits = append(m.limits, newMeter(0, bucket.Never, s.Machine.Limit))
	}
	return m
}

func newMeter(from, to time.Duration, r bucket.Rate) meter {
	m := meter{from: from, to: to, line: bucket.NewLine(from, r)}
	m.state = m.line.Fresh(from)
	return m
}

// A Refused is an answer of a machine other than a success.
type refused struct{ o outcome.Outcome }

var _ outcome.Classifier = (*refused)(nil)

func (r *refused) Error() string            { return "machine: " + r.o.Code }
func (r *refused) Outcome() outcome.Outcome { return r.o }

// Call makes a call that needs a key. The caller disconnects when ctx ends.
func (m *Machine) Call(ctx context.Context, key int) error {
	done, err := m.arrive(key)
	if err != nil {
		return err
	}
	err = m.clock.Sleep(ctx, m.start+done-m.clock.Now())
	m.note(done, key, err == nil)
	return err
}

// arrive assigns the call to the worker that becomes free first, and returns the time of completion.
func (m *Machine) arrive(key int) (done time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now() - m.start
	m.counts.Sent++
	if m.keeps {
		m.arrivals = append(m.arrivals, now)
	}
	if m.story.find(Down, now) != nil {
		m.counts.Failed++
		return 0, &refused{outcome.Outcome{Class: outcome.Failed, Code: "down"}}
	}
	if err := m.throttle(now); err != nil {
		m.counts.Throttled++
		return 0, err
	}
	first := 0
	for i, at := range m.free {
		if at < m.free[first] {
			first = i
		}
	}
	begin := max(m.free[first], now)
	if most := m.story.Machine.Queue; most > 0 && (begin-now).Seconds()*m.story.Machine.Does > float64(most) {
		m.counts.Failed++
		return 0, &refused{outcome.Outcome{Class: outcome.Failed, Code: "queue-full", Undone: true}}
	}
	takes := m.takes/2 + time.Duration(m.rand.Int64N(int64(m.takes)))
	if t := m.story.find(Slow, begin); t != nil {
		takes = seconds(takes.Seconds() * t.Times)
	}
	if m.cold(key, now) {
		takes = seconds(takes.Seconds() * m.story.Machine.Keys.Cold)
	}
	m.free[first] = m.pass(begin, takes)
	return m.free[first], nil
}

// throttle takes a unit of the limit that is in force.
func (m *Machine) throttle(now time.Duration) error {
	for i := range m.limits {
		l := &m.limits[i]
		if now < l.from || now >= l.to {
			continue
		}
		next, wait, ok := l.state.Take(&l.line, now, 1)
		if l.state = next; ok {
			return nil
		}
		hint := outcome.Hint{Said: true, After: wait}
		return &refused{outcome.Outcome{Class: outcome.Throttled, Code: "throttled", Undone: true, Hint: hint}}
	}
	return nil
}

// cold reports whether a call with a key takes longer.
func (m *Machine) cold(key int, now time.Duration) bool {
	if len(m.warm) == 0 {
		return false
	}
	at := m.warm[key%len(m.warm)]
	for i := range m.story.Troubles {
		if t := &m.story.Troubles[i]; t.Kind == Flush && at <= t.From && now >= t.From {
			return true
		}
	}
	lasts := m.story.Machine.Keys.Lasts
	return lasts > 0 && now-at > lasts
}

// pass returns the end of work that starts at begin, if no work happens during stalls.
func (m *Machine) pass(begin, takes time.Duration) time.Duration {
	end := begin + takes
	for i := range m.story.Troubles {
		if t := &m.story.Troubles[i]; t.Kind == Stall && begin < t.To && end > t.From {
			end += t.To - max(begin, t.From)
		}
	}
	return end
}

func (m *Machine) note(done time.Duration, key int, useful bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if useful && len(m.warm) > 0 {
		m.warm[key%len(m.warm)] = done
	}
	second := int(done / time.Second)
	switch {
	case second >= len(m.seconds):
	case useful:
		m.seconds[second].Useful++
	default:
		m.seconds[second].Wasted++
	}
}

// Record returns the work of each second.
func (m *Machine) Record() []Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Work(nil), m.seconds...)
}

// traffic returns the counts so far.
func (m *Machine) traffic() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}
