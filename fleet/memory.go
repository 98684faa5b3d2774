package fleet

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store in this process: for one program with several instances of
// weir, for simulators, and as the measure of the others. What is full again, and
// what has had its time, is forgotten when room is needed. It is safe for concurrent use. One lock is held
// for each call, and now and then for a look at all that is kept.
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	groups  map[string]*group
	sweepAt int // how many things there may be before the next look for old ones
	things  int // cells, lanes, records and members that have been added, about
}

// sweepFirst is how many things are kept before any is looked at.
const sweepFirst = 4096

// NewMemory makes a store with the clock, which must not run backwards; nil means
// the system's.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		begin := time.Now() // its monotonic reading is what keeps time
		clock = func() time.Time { return begin.Add(time.Since(begin)) }
	}
	return &Memory{clock: clock, groups: make(map[string]*group), sweepAt: sweepFirst}
}

// A group is what Memory keeps of an upstream. It is guarded by Memory.mu.
type group struct {
	cells   map[cellKey]*Cell
	lanes   map[uint64]*answer // to the latest ask of each lane
	records map[string]*record // by name
	members *Members
}

// A cellKey names a cell: the limit's name, and the key that it is counted by.
type cellKey struct{ limit, key string }

// An answer is kept for repeats.
type answer struct {
	id      uint64
	at      time.Time
	granted int64
	grants  []Grant
}

// LaneKeep is how long a store remembers the answer to the latest ask of a lane, at
// least.
const LaneKeep = time.Minute

var _ Store = (*Memory)(nil)

// enter is the begin of every call: the group, and the present.
func (m *Memory) enter(ctx context.Context, name string) (*group, time.Time, error) {
	if ctx.Err() != nil {
		return nil, time.Time{}, context.Cause(ctx)
	}
	now := m.clock()
	if m.things >= m.sweepAt {
		m.sweep(now)
	}
	g := m.groups[name]
	if g == nil {
		g = &group{make(map[cellKey]*Cell), make(map[uint64]*answer), make(map[string]*record), NewMembers(now.UnixMicro(), true)}
		m.groups[name] = g
		m.things++
	}
	return g, now, nil
}

// sweep forgets what is of no more use. It happens between calls, for a call holds
// on to cells that are full.
func (m *Memory) sweep(now time.Time) {
	m.things = 0
	for name, g := range m.groups {
		n := g.sweep(now)
		if n == 0 {
			delete(m.groups, name)
			continue
		}
		m.things += n + 1
	}
	m.sweepAt = max(sweepFirst, 2*m.things)
}

// sweep forgets what is idle or over in one group, and returns how many things are left. A group with none is
// forgotten itself.
func (g *group) sweep(now time.Time) (left int) {
	at := g.members.Supply(now.UnixMicro())
	for k, c := range g.cells {
		if c.Idle(at) {
			delete(g.cells, k)
		}
	}
	for lane, a := range g.lanes {
		if now.Sub(a.at) > LaneKeep {
			delete(g.lanes, lane)
		}
	}
	for name, r := range g.records {
		if now.After(r.until) {
			delete(g.records, name)
		}
	}
	left = len(g.cells) + len(g.lanes) + len(g.records) + len(g.members.Rows)
	if g.members.Any() {
		left++
	}
	return left
}

// cell is that of a limit and key.
func (m *Memory) cell(g *group, r *Rule, key string) *Cell {
	k := cellKey{r.Name, key}
	c := g.cells[k]
	if c == nil {
		m.things++
		c = new(Cell)
		g.cells[k] = c
	}
	return c
}

// Take is Store's.
func (m *Memory) Take(ctx context.Context, a *Ask) error {
	a.Granted, a.Grants = 0, a.Grants[:0]
	if err := a.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, at, err := m.enter(ctx, a.Group)
	if err != nil {
		return err
	}
	a.Now = at
	// A lane has one ask at a time: the latest answer is all that a repeat can want.
	last := g.lanes[a.Lane]
	if last != nil && last.id == a.ID { // whichever of the two came first
		a.repeat(last.granted, last.grants)
		return nil
	}
	// Members, cells and answer are of one instant.
	supply := g.members.Supply(at.UnixMicro())
	if err := a.Fits(at.UnixMicro()); err != nil {
		return err
	}
	g.members.Asked(at.UnixMicro(), a)
	for i := range a.Settle {
		s := &a.Settle[i]
		m.cell(g, s.Rule, s.Key).Settle(supply, s)
	}
	var few [8]*Cell
	cells := few[:0]
	for i := range a.Claims {
		cells = append(cells, m.cell(g, a.Claims[i].Rule, a.Claims[i].Key))
	}
	a.Answer(supply, cells)
	if last == nil {
		last = new(answer)
		g.lanes[a.Lane] = last
		m.things++
	}
	last.id, last.at, last.granted, last.grants = a.ID, at, a.Granted, append(last.grants[:0], a.Grants...)
	return nil
}

// Init is Store's. Memory takes every group that it does not know for new.
func (m *Memory) Init(context.Context, string) error { return nil }

// Known is Store's.
func (m *Memory) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close is Store's.
func (m *Memory) Close() error { return nil }
