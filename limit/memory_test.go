package limit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/limittest"
)

func TestMemory(t *testing.T) {
	m := limit.NewMemory(nil)
	limittest.TestStore(t, func(testing.TB) limit.Store { return m }, limittest.Hammer(400*time.Millisecond))
}

func TestMemoryDriven(t *testing.T) {
	c := newHand()
	m := limit.NewMemory(c.now)
	limittest.TestStore(t, func(testing.TB) limit.Store { return m }, limittest.Driven(c.advance))
}

// Processes that hold what they were granted for different times use the limit, and are never over it.
func TestMemoryHolds(t *testing.T) {
	c := newHand()
	m := limit.NewMemory(c.now)
	limittest.TestHolds(t, func(testing.TB) limit.Store { return m }, limittest.Driven(c.advance))
}

// A hand is a clock that a test moves.
type hand struct {
	mu sync.Mutex
	t  time.Time
}

func newHand() *hand { return &hand{t: time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC)} }

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.t
}

func (h *hand) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t = h.t.Add(d)
}

func TestCompareFindsNoDifferenceOfAStoreFromItself(t *testing.T) {
	for range 20 {
		c := newHand()
		limittest.Compare(t, limit.NewMemory(c.now), limit.NewMemory(c.now), c.advance, rand.Uint64(), 500)
	}
}

// A wrong is a store with a fault.
type wrong struct {
	*limit.Memory
	fault string
}

var faults = []string{"too much back", "no pause", "no debt", "extra", "wait", "left", "marks of repeats", "repeats", "seen", "keeps no records", "counts nobody"}

func (w *wrong) Take(ctx context.Context, a *limit.Ask) error {
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

func (w *wrong) Swap(ctx context.Context, group string, r limit.Record) (limit.Record, bool, error) {
	if w.fault == "keeps no records" {
		r.Keep = 0
	}
	return w.Memory.Swap(ctx, group, r)
}

func (w *wrong) Beat(ctx context.Context, b *limit.Beat) (limit.Standing, error) {
	s, err := w.Memory.Beat(ctx, b)
	if w.fault == "counts nobody" {
		s.Alive = 1
	}
	return s, err
}

// A listener hears that a test failed.
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
		c := newHand()
		l := &listener{TB: t}
		func() {
			defer func() { _ = recover() }()
			limittest.Compare(l, limit.NewMemory(c.now), &wrong{limit.NewMemory(c.now), fault}, c.advance, 7, 3000)
		}()
		if l.said == "" {
			t.Errorf("%s: not found in 3,000 steps", fault)
		}
	}
}
