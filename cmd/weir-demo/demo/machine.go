package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A machine is the upstream. It has a number of workers and one queue in order of arrival. It does not notice that a caller has
// disconnected and works for it. It is safe for concurrent use.
type machine struct {
	clock  clock.Clock
	start  time.Duration
	stall  span          // it stalls in this time
	length time.Duration // length of the record

	mu      sync.Mutex
	rand    *rand.Rand
	free    []time.Duration // since the start, the time at which each worker becomes free
	seconds []work
}

// work is the work of a machine in a second.
type work struct {
	Useful int `json:"useful"` // calls whose callers still waited
	Wasted int `json:"wasted"` // calls whose callers had disconnected
}

// A span is a part of a run.
type span struct{ from, to time.Duration }

// workload is the average work of a call. It varies by up to half.
const workload = 100 * time.Millisecond

// capacity returns the calls per second of a number of workers.
func capacity(workers int) int { return workers * int(time.Second/workload) }

func newMachine(c clock.Clock, r *rand.Rand, workers int, s story) *machine {
	return &machine{
		clock: c, start: c.Now(), stall: s.stall, length: s.length,
		rand: r, free: make([]time.Duration, workers), seconds: make([]work, s.length/time.Second),
	}
}

// call makes a call. The caller disconnects when ctx ends.
func (m *machine) call(ctx context.Context) error {
	done := m.arrive()
	err := m.clock.Sleep(ctx, m.start+done-m.clock.Now())
	m.note(done, err == nil)
	return err
}

// arrive assigns the call to the worker that becomes free first, and returns the time of completion.
func (m *machine) arrive() (done time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0
	for i, at := range m.free {
		if at < m.free[first] {
			first = i
		}
	}
	takes := workload/2 + time.Duration(m.rand.Int64N(int64(workload)))
	m.free[first] = m.stall.pass(max(m.free[first], m.clock.Now()-m.start), takes)
	return m.free[first]
}

// pass returns the end of work that starts at begin, if no work happens within the span.
func (s span) pass(begin, takes time.Duration) time.Duration {
	end := begin + takes
	if begin < s.to && end > s.from {
		end += s.to - max(begin, s.from)
	}
	return end
}

func (m *machine) note(done time.Duration, useful bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	second := int(done / time.Second)
	switch {
	case second >= len(m.seconds):
	case useful:
		m.seconds[second].Useful++
	default:
		m.seconds[second].Wasted++
	}
}

func (m *machine) record() []work {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]work(nil), m.seconds...)
}
