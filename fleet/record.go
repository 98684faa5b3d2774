package fleet

import (
	"bytes"
	"context"
	"time"
)

// A record is what Memory keeps of a Record.
type record struct {
	Record
	until time.Time
}

// NextVersion is the version of a record that is written over one with the version
// old, 0 if there is none. It never comes again, not even after the record has been
// forgotten: who slept meanwhile must not take another's record for its own.
func NextVersion(old int64, now time.Time) int64 { return max(old+1, now.UnixMicro()) }

// Beat is Store's.
func (m *Memory) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if err := b.Check(); err != nil {
		return Standing{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now, err := m.enter(ctx, b.Group)
	if err != nil {
		return Standing{}, err
	}
	if g.members.Rows[b.Client] == nil {
		m.things++
	}
	return g.members.Beat(now.UnixMicro(), b), nil
}

// Load is Store's.
func (m *Memory) Load(ctx context.Context, group string, names []string) ([]Record, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now, err := m.enter(ctx, group)
	if err != nil {
		return nil, time.Time{}, err
	}
	all := make([]Record, 0, len(names))
	for _, name := range names {
		all = append(all, g.record(now, name))
	}
	return all, now, nil
}

// record is a copy of the record of a name: with a Version of 0 if there is none, or none any more.
func (g *group) record(now time.Time, name string) Record {
	r := g.records[name]
	if r == nil || now.After(r.until) {
		return Record{Name: name}
	}
	return r.clone()
}

// clone has bytes of its own.
func (r Record) clone() Record {
	r.Value = bytes.Clone(r.Value)
	return r
}

// Swap is Store's. The value is copied, as is that which Load returns: the caller's bytes stay its own.
func (m *Memory) Swap(ctx context.Context, group string, r Record) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, now, err := m.enter(ctx, group)
	if err != nil {
		return Record{}, false, err
	}
	if old := g.record(now, r.Name); old.Version != r.Version {
		return old, false, nil
	}
	if g.records[r.Name] == nil {
		m.things++
	}
	r.Version = NextVersion(r.Version, now)
	g.records[r.Name] = &record{r.clone(), now.Add(r.Keep)}
	return r, true, nil
}
