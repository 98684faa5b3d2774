package limit

import (
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// Memory is a Store in this process: for one program with several instances of
// weir, for simulators, and as the measure of the others. What is full again, and
// records that have had their time, are forgotten when room is needed.
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	groups  map[string]*group
	sweepAt int // how many cells there may be before the next look for full ones
	cells   int
}

// NewMemory makes a store with the clock, which must not run backwards; nil means
// the system's.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		begin := time.Now() // its monotonic reading is what keeps time
		clock = func() time.Time { return begin.Add(time.Since(begin)) }
	}
	return &Memory{clock: clock, groups: make(map[string]*group), sweepAt: 1024}
}

type group struct {
	cells   map[cellKey]*Cell
	lanes   map[uint64]*answer
	records map[string]*record
	alive   map[string]time.Time
}

type cellKey struct{ limit, key string }

type answer struct {
	id      uint64
	granted int64
	grants  []Grant
}

type record struct {
	Record
	until time.Time
}

var _ Store = (*Memory)(nil)

func (m *Memory) group(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{make(map[cellKey]*Cell), make(map[uint64]*answer), make(map[string]*record), make(map[string]time.Time)}
		m.groups[name] = g
	}
	return g
}

func (m *Memory) cell(g *group, now int64, r *Rule, key string) *Cell {
	k := cellKey{r.Name, key}
	c := g.cells[k]
	if c == nil {
		if m.cells++; m.cells >= m.sweepAt {
			m.sweep(now)
		}
		c = new(Cell)
		g.cells[k] = c
	}
	return c
}

// sweep forgets what is full again.
func (m *Memory) sweep(now int64) {
	m.cells = 0
	for _, g := range m.groups {
		for k, c := range g.cells {
			if c.Idle(now) {
				delete(g.cells, k)
			}
		}
		m.cells += len(g.cells)
	}
	m.sweepAt = max(1024, 2*m.cells)
}

// Take is Store's.
func (m *Memory) Take(ctx context.Context, a *Ask) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.group(a.Group)
	a.Now = m.clock()
	now := a.Now.UnixMicro()
	if err := a.fits(now); err != nil {
		return err
	}
	if last := g.lanes[a.Lane]; a.Again && last != nil && last.id == a.ID {
		a.Granted = last.granted
		a.Grants = append(a.Grants[:0], last.grants...)
		for i := range a.Grants {
			a.Grants[i].Mark = Mark{}
		}
		return nil
	}
	cells := make([]*Cell, len(a.Claims))
	for i := range a.Claims {
		cells[i] = m.cell(g, now, a.Claims[i].Rule, a.Claims[i].Key)
	}
	for i := range a.Settle {
		s := &a.Settle[i]
		m.cell(g, now, s.Rule, s.Key).Settle(now, s)
	}
	a.Answer(now, cells)
	last := g.lanes[a.Lane]
	if last == nil {
		last = new(answer)
		g.lanes[a.Lane] = last
	}
	last.id, last.granted, last.grants = a.ID, a.Granted, append(last.grants[:0], a.Grants...)
	return nil
}

// fits reports whether the store's present is in the windows that are named.
func (a *Ask) fits(now int64) error {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Rule.Shape == Fixed && (now < c.Start.UnixMicro() || now >= c.Next.UnixMicro()) {
			return ErrWindow
		}
	}
	return nil
}

// Answer decides an ask from the cells of its claims, changes them, and writes the
// answer. It is the whole arithmetic of a store that holds its state as Cells.
func (a *Ask) Answer(now int64, cells []*Cell) {
	a.Granted = a.Copies
	for i, c := range cells {
		a.Granted = min(a.Granted, c.copies(now, &a.Claims[i]))
	}
	a.Grants = a.Grants[:0]
	for i, c := range cells {
		claim := &a.Claims[i]
		c.add(now, claim.Rule, a.Granted*claim.Cost)
		var extra int64
		if a.Granted == a.Copies && claim.Extra > 0 && c.Paused <= now {
			extra = min(claim.Extra, c.left(claim.Rule)/4)
			c.add(now, claim.Rule, extra)
		}
		a.Grants = append(a.Grants, c.grant(now, claim, extra))
	}
}

// Beat is Store's.
func (m *Memory) Beat(ctx context.Context, group, client string, keep time.Duration) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now := m.group(group), m.clock()
	g.alive[client] = now
	for name, at := range g.alive {
		if now.Sub(at) > keep {
			delete(g.alive, name)
		}
	}
	return len(g.alive), nil
}

// Load is Store's.
func (m *Memory) Load(ctx context.Context, group string, names []string) ([]Record, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now := m.group(group), m.clock()
	all := make([]Record, 0, len(names))
	for _, name := range names {
		all = append(all, g.record(now, name))
	}
	return all, now, nil
}

func (g *group) record(now time.Time, name string) Record {
	r := g.records[name]
	if r == nil || now.After(r.until) {
		return Record{Name: name}
	}
	return r.Record
}

// Swap is Store's.
func (m *Memory) Swap(ctx context.Context, group string, r Record) (Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, false, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now := m.group(group), m.clock()
	if old := g.record(now, r.Name); old.Version != r.Version {
		return old, false, nil
	}
	r.Version++
	r.Value = append([]byte(nil), r.Value...)
	g.records[r.Name] = &record{r, now.Add(r.Keep)}
	for name, old := range g.records {
		if now.After(old.until) {
			delete(g.records, name)
		}
	}
	return r, true, nil
}

// Close is Store's.
func (m *Memory) Close() error { return nil }

// A Cell is the state of one limit for one key, as a store keeps it. The zero Cell
// is full. Instants are microseconds of the store's clock.
type Cell struct {
	Shape  Shape
	Unit   int64       // of the meter that Fill was weighed by
	Fill   bucket.Fill // of shape Bucket
	Start  int64       // of shape Fixed: the window's begin
	End    int64       // and end
	Count  int64       // units in the window, of shapes Rolling and Fixed
	Slots  []Slot      // of shape Rolling, the oldest first
	Paused int64       // until when
	Full   int64       // when everything is there again
}

// A Slot is what went in one slot of a ring.
type Slot struct{ Number, Count, Grain int64 }
