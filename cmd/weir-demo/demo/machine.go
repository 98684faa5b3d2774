package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A machine is the upstream: so many workers and one queue, in the order in which calls
// come. It does not see that a caller has left, and works for it nevertheless. It is safe
// for concurrent use.
type machine struct {
	clock  clock.Clock
	start  time.Duration
	stall  span          // it stands still meanwhile
	length time.Duration // of the record

	mu      sync.Mutex
	rand    *rand.Rand
	free    []time.Duration // when each worker will have nothing to do, since the start
	seconds []work
}

// work is what a machine did in a second.
type work struct {
	Useful int `json:"useful"` // calls whose callers were there to hear the answer
	Wasted int `json:"wasted"` // calls whose callers had left
}

// A span is a part of a run.
type span struct{ from, to time.Duration }

// A call takes a tenth of a second of work, or up to a half less or more.
const workload = 100 * time.Millisecond

// capacity is how many calls a second so many workers do.
func capacity(workers int) int { return workers * int(time.Second/workload) }

func newMachine(c clock.Clock, r *rand.Rand, workers int, s story) *machine {
	return &machine{
		clock: c, start: c.Now(), stall: s.stall, length: s.length,
		rand: r, free: make([]time.Duration, workers), seconds: make([]work, s.length/time.Second),
	}
}

// call is a call whose caller leaves when ctx ends.
func (m *machine) call(ctx context.Context) error {
	done := m.arrive()
	err := m.clock.Sleep(ctx, m.start+done-m.clock.Now())
	m.note(done, err == nil)
	return err
}

// arrive gives the call to the worker who is free first, and says when it will be done.
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

// pass is when work is done that begins at the instant, if nothing is done in the span.
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
