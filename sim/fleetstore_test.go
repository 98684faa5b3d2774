package sim_test

import (
	"context"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A lossy is a store that can lose its data. It then treats limits as used up, as Redis does with weir's scripts,
// except that it grants Claim.Cold units.
type lossy struct {
	fleet.Store // for records
	clock       func() time.Time
	state       *lossyState
}

type lossyState struct {
	members *fleet.Members
	cells   map[[2]string]*lossyCell
	lanes   map[uint64]fleet.Ask
	since   int64 // since when it knows the usage; 0 if always
}

// A lossyCell is a cell, and how many of its units only count because its data was lost.
type lossyCell struct {
	fleet.Cell
	guess int64
}

func newLossy(clock func() time.Time) *lossy {
	return &lossy{fleet.NewMemory(clock), clock, newState(clock().UnixMicro(), true)}
}

func newState(now int64, isNew bool) *lossyState {
	s := &lossyState{fleet.NewMembers(now, isNew), make(map[[2]string]*lossyCell), make(map[uint64]fleet.Ask), 0}
	if !isNew {
		s.since = now
	}
	return s
}

// empty loses all data.
func (s *lossy) empty() { s.state = newState(s.clock().UnixMicro(), false) }

// copy returns a copy of the data, as a backup does.
func (s *lossyState) copy() *lossyState {
	c := newState(0, true)
	*c.members, c.since = *s.members, s.since
	c.members.Falls, c.members.Stale = slices.Clone(c.members.Falls), slices.Clone(c.members.Stale)
	c.members.Rows = make(map[string]*fleet.Member)
	for id, r := range s.members.Rows {
		row := *r
		c.members.Rows[id] = &row
	}
	for k, cell := range s.cells {
		copied := *cell
		copied.Slots = slices.Clone(cell.Slots)
		c.cells[k] = &copied
	}
	for lane, a := range s.lanes {
		c.lanes[lane] = a
	}
	return c
}

func (s *lossyState) cell(r *fleet.Rule, key string, w limit.Windows) *lossyCell {
	k := [2]string{r.Name, key}
	c := s.cells[k]
	if c != nil {
		return c
	}
	c = new(lossyCell)
	s.cells[k] = c
	full := r.Amount
	if r.Shape == limit.Bucket {
		full = r.Meter.Cap / r.Meter.Unit
	}
	if s.since > 0 && !r.Tally && !(r.Shape == limit.Calendar && w.Start.UnixMicro() >= s.since) {
		c.guess = full
		c.Settle(&fleet.Supply{Now: s.since, Z: s.since}, &fleet.Settlement{Rule: r, Key: key, Windows: w, Owe: full})
	}
	return c
}

// dark reports whether the earlier usage of a calendar window is unknown.
func (s *lossyState) dark(k *fleet.Claim) bool {
	return s.since > 0 && k.Rule.Shape == limit.Calendar && k.Start.UnixMicro() < s.since
}

// forgive lets a claim have units that count as used only because the data was lost.
func (c *lossyCell) forgive(k *fleet.Claim, copies int64) {
	n := min(k.Cold, c.guess, k.Cost*copies+k.Extra)
	if n <= 0 {
		return
	}
	switch c.Shape {
	case limit.Bucket:
		n = min(n, max(0, c.Fill.Weight)/k.Rule.Meter.Unit)
		c.Fill.Weight -= n * k.Rule.Meter.Unit
	case limit.Rolling:
		if len(c.Slots) == 0 {
			return
		}
		n = min(n, c.Slots[0].Count)
		c.Slots[0].Count -= n
		c.Count -= n
	default:
		n = min(n, c.Count)
		c.Count -= n
	}
	c.guess -= n
}

// Init declares that nothing was used before the data was lost.
func (s *lossy) Init(context.Context, string) error {
	s.state.since, s.state.members.Since = 0, 0
	for _, c := range s.state.cells {
		rule := fleet.Rule{}
		rule.Meter.Unit = max(1, c.Unit)
		c.forgive(&fleet.Claim{Rule: &rule, Cost: c.guess, Cold: c.guess}, 1)
	}
	return nil
}

func (s *lossy) Take(_ context.Context, a *fleet.Ask) error {
	a.Granted, a.Grants = 0, nil
	if err := a.Check(); err != nil {
		return err
	}
	now, st := s.clock(), s.state
	a.Now = now
	if last, ok := st.lanes[a.Lane]; ok && last.ID == a.ID {
		a.Granted, a.Grants = last.Granted, slices.Clone(last.Grants)
		return nil
	}
	supply := st.members.Supply(now.UnixMicro())
	if err := a.Fits(now.UnixMicro()); err != nil {
		return err
	}
	st.members.Asked(now.UnixMicro(), a)
	for i := range a.Settle {
		d := &a.Settle[i]
		st.cell(d.Rule, d.Key, d.Windows).Settle(supply, d)
	}
	var cells []*fleet.Cell
	for i := range a.Claims {
		k := &a.Claims[i]
		c := st.cell(k.Rule, k.Key, k.Windows)
		c.forgive(k, a.Copies)
		cells = append(cells, &c.Cell)
	}
	a.Answer(supply, cells)
	for i := range a.Claims {
		if g := &a.Grants[i]; st.dark(&a.Claims[i]) {
			g.Back, g.Cold = 0, true
		} else if a.Claims[i].Cold == fleet.ColdFull {
			g.Cold = false
		}
	}
	st.lanes[a.Lane] = fleet.Ask{ID: a.ID, Granted: a.Granted, Grants: slices.Clone(a.Grants)}
	return nil
}

func (s *lossy) Beat(_ context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if err := b.Check(); err != nil {
		return fleet.Standing{}, err
	}
	return s.state.members.Beat(s.clock().UnixMicro(), b), nil
}

func (s *lossy) Known(context.Context, string) (time.Time, bool, error) {
	if s.state.since > 0 {
		return time.UnixMicro(s.state.since), true, nil
	}
	return time.Time{}, true, nil
}
