package fleet

import (
	"bytes"
	"context"
	"time"
)

// A record is the state of a Record in Memory.
type record struct {
	Record
	until time.Time
}

// NextVersion returns the version of a record that replaces one with the version old; old is 0 if there is
// none. A version is never reused, not even after the record was dropped. Otherwise a process that slept could
// mistake another's record for its own.
func NextVersion(old int64, now time.Time) int64 { return max(old+1, now.UnixMicro()) }

// Beat implements Store.
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

// Load implements Store.
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

// record returns a copy of the record with the name. Its Version is 0 if there is none or it has expired.
func (g *group) record(now time.Time, name string) Record {
	r := g.records[name]
	if r == nil || now.After(r.until) {
		return Record{Name: name}
	}
	return r.clone()
}

// clone returns a copy with its own bytes.
func (r Record) clone() Record {
	r.Value = bytes.Clone(r.Value)
	return r
}

// Swap implements Store. It copies the value, as Load does, so the caller keeps its bytes.
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
