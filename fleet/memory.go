package fleet

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store in this process. It is for a program with several instances of weir and for simulators, and
// it defines how other stores behave. It drops full limits and expired state when it needs room. It is safe for
// concurrent use. Each call holds one lock, as does an occasional sweep of the complete state.
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	groups  map[string]*group
	sweepAt int // the number of entries at which the next sweep starts
	things  int // approximate number of added cells, lanes, records and members
}

// sweepFirst is the number of entries before the first sweep.
const sweepFirst = 4096

// NewMemory makes a store with the clock, which must not run backwards. nil means the system's clock.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		begin := time.Now() // its monotonic reading keeps the time
		clock = func() time.Time { return begin.Add(time.Since(begin)) }
	}
	return &Memory{clock: clock, groups: make(map[string]*group), sweepAt: sweepFirst}
}

// A group is the state of an upstream in Memory. It is guarded by Memory.mu.
type group struct {
	cells   map[cellKey]*Cell
	lanes   map[uint64]*answer // the response to the latest request of each lane
	records map[string]*record // by name
	members *Members
}

// A cellKey identifies a cell: the limit's name and the key.
type cellKey struct{ limit, key string }

// An answer is a response that is kept for repeats.
type answer struct {
	id      uint64
	at      time.Time
	granted int64
	grants  []Grant
}

// LaneKeep is how long a store remembers the response to the latest request of a lane, at least.
const LaneKeep = time.Minute

var _ Store = (*Memory)(nil)

// enter begins a call: it returns the group and the current time.
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

// sweep drops state that is of no use. It runs only between calls, since a call may use cells that are full.
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

// sweep drops the idle and expired entries of one group, and returns the number of remaining ones. A group
// without entries is dropped as well.
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

// cell returns the cell of a limit and key. It creates the cell if necessary.
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

// Take implements Store.
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
	// A lane has one request at a time, so a repeat can only be of the latest.
	last := g.lanes[a.Lane]
	if last != nil && last.id == a.ID { // a repeat, whichever of the two arrived first
		a.repeat(last.granted, last.grants)
		return nil
	}
	// Members, cells and response are of the same instant.
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

// Init implements Store. Memory treats every unknown group as new.
func (m *Memory) Init(context.Context, string) error { return nil }

// Known implements Store.
func (m *Memory) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close implements Store.
func (m *Memory) Close() error { return nil }
