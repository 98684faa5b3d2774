package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
)

func TestMemory(t *testing.T) {
	m := fleet.NewMemory(nil)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return m }, storetest.Hammer(400*time.Millisecond))
}

func TestMemoryDriven(t *testing.T) {
	c := storetest.NewHand()
	m := fleet.NewMemory(c.Now)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return m }, storetest.Driven(c.Advance))
}

func TestMemoryLetsLongCallsUseWhatABucketAllows(t *testing.T) {
	storetest.TestLongCalls(t, func(t *testing.T) ([]fleet.Store, func(d time.Duration)) {
		c := storetest.NewHand()
		return []fleet.Store{fleet.NewMemory(c.Now)}, c.Advance
	})
}

// Processes that hold their grants for different times use all of the limit and never exceed it.
func TestMemoryHolds(t *testing.T) {
	c := storetest.NewHand()
	m := fleet.NewMemory(c.Now)
	storetest.TestHolds(t, func(testing.TB) fleet.Store { return m }, storetest.Driven(c.Advance))
}

func TestCompareFindsNoDifferenceOfAStoreFromItself(t *testing.T) {
	for range 20 {
		c := storetest.NewHand()
		storetest.Compare(t, fleet.NewMemory(c.Now), fleet.NewMemory(c.Now), c.Advance, rand.Uint64(), 500)
	}
}

// A wrong is a store with a fault.
type wrong struct {
	*fleet.Memory
	fault string
}

var faults = []string{"too much back", "no pause", "no debt", "extra", "wait", "left", "marks of repeats", "repeats", "seen", "keeps no records", "counts nobody"}

func (w *wrong) Take(ctx context.Context, a *fleet.Ask) error {
	b := *a
	b.Settle, b.Claims = slices.Clone(a.Settle), slices.Clone(a.Claims)
	for i := range b.Settle {
		switch s := &b.Settle[i]; {
		case w.fault == "too much back" && s.Back > 0:
			s.Back++
		case w.fault == "no pause":
			s.Pause = 0
		case w.fault == "no debt":
			s.Owe = 0
		}
	}
	for i := range b.Claims {
		if w.fault == "seen" {
			b.Claims[i].Seen = 0
		}
	}
	if w.fault == "repeats" && b.Again {
		b.ID++
	}
	err := w.Memory.Take(ctx, &b)
	a.Now, a.Granted, a.Grants = b.Now, b.Granted, b.Grants
	for i := range a.Grants {
		switch g := &a.Grants[i]; {
		case w.fault == "extra" && g.Extra > 1:
			g.Extra--
		case w.fault == "wait" && g.Wait > 0:
			g.Wait += time.Microsecond
		case w.fault == "left" && g.Left > 0:
			g.Left--
		case w.fault == "marks of repeats" && b.Again:
			g.Mark.At = 1
		}
	}
	return err
}

func (w *wrong) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if w.fault == "keeps no records" {
		r.Keep = 0
	}
	return w.Memory.Swap(ctx, group, r)
}

func (w *wrong) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	s, err := w.Memory.Beat(ctx, b)
	if w.fault == "counts nobody" {
		s.Alive = 1
	}
	return s, err
}

// A listener records whether a test failed.
type listener struct {
	testing.TB
	said string
}

func (l *listener) Helper() {}
func (l *listener) Fatalf(format string, args ...any) {
	l.said = fmt.Sprintf(format, args...)
	panic(l)
}

func TestCompareFindsEveryDifference(t *testing.T) {
	for _, fault := range faults {
		c := storetest.NewHand()
		l := &listener{TB: t}
		func() {
			defer func() { _ = recover() }()
			storetest.Compare(l, fleet.NewMemory(c.Now), &wrong{fleet.NewMemory(c.Now), fault}, c.Advance, 7, 3000)
		}()
		if l.said == "" {
			t.Errorf("%s: not found in 3,000 steps", fault)
		}
	}
}
