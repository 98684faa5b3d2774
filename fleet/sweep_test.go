package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestMemoryIsBounded adds keys, lanes, records and clients without end. They are dropped when they have
// expired, and not before.
func TestMemoryIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := NewMemory(func() time.Time { return now })
	ctx := context.Background()
	rule := &Rule{Name: "put", Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10})}
	day := &Rule{Name: "day", Meter: bucket.MeterOf(bucket.Rate{Amount: 1, Per: 24 * time.Hour, Burst: 5})}
	most := 0
	for i := range 60_000 {
		now = now.Add(20 * time.Millisecond)
		key, id := fmt.Sprint(i), uint64(i+1)
		a := Ask{Group: fmt.Sprint("g", i%100), ID: id, Lane: id, Copies: 3, Claims: []Claim{{Rule: rule, Key: key, Cost: 3}}}
		if i == 0 {
			a.Claims = append(a.Claims, Claim{Rule: day, Key: key, Cost: 1})
		}
		if err := m.Take(ctx, &a); err != nil || a.Granted != 3 {
			t.Fatalf("granted %d, %v", a.Granted, err)
		}
		if _, _, err := m.Swap(ctx, a.Group, Record{Name: key, Keep: time.Second}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Beat(ctx, &Beat{Group: a.Group, Client: key, Seq: 1, Silence: 300_000, Life: 1_000_000}); err != nil {
			t.Fatal(err)
		}
		most = max(most, m.kept())
	}
	// In the minute for which lanes are remembered, there are 3,000 requests, and 50 of the other entries per
	// second.
	if most > 3*sweepFirst {
		t.Errorf("%d things were kept at once, want %d at most", most, 3*sweepFirst)
	}
	a := Ask{Group: "g0", ID: 1 << 60, Claims: []Claim{{Rule: day, Key: "0", Cost: 1}}}
	if err := m.Take(ctx, &a); err != nil || a.Grants[0].Left != 2 {
		t.Errorf("%+v, %v: want 2 left of what fills in days", a.Grants, err)
	}
}

func (m *Memory) kept() (n int) {
	for _, g := range m.groups {
		n += len(g.cells) + len(g.lanes) + len(g.records) + len(g.members.Rows)
	}
	return n
}

// TestSweepKeepsTheCellsOfACall checks that a call that starts a sweep does not lose the cells that it has
// already found, which are full.
func TestSweepKeepsTheCellsOfACall(t *testing.T) {
	m := NewMemory(nil)
	m.sweepAt = 1
	rule := func(name string) *Rule {
		return &Rule{Name: name, Meter: bucket.MeterOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 5})}
	}
	for i := range uint64(3) {
		a := Ask{Group: "g", ID: i + 1, Copies: 3}
		for j := range 5 {
			a.Claims = append(a.Claims, Claim{Rule: rule(fmt.Sprint(j)), Cost: 1})
		}
		m.sweepAt = 1
		if err := m.Take(context.Background(), &a); err != nil {
			t.Fatal(err)
		}
		for j, g := range a.Grants {
			if want := max(0, 5-3*int64(i+1)); g.Left != want {
				t.Errorf("ask %d, limit %d: %d left, want %d", i, j, g.Left, want)
			}
		}
	}
}
