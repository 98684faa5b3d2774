package filestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
)

// used opens a file, takes 8 of 10 units of every limit, pauses one key and closes the file.
func used(t *testing.T, c hand, path string) {
	t.Helper()
	s, err := filestore.OpenAt(path, quick, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	now := c.Now()
	take(t, s, 8, claim(now, fast, 1), claim(now, roll, 1), claim(now, day, 1))
	a := &fleet.Ask{Group: "g", ID: 5, Lane: 9, Settle: []fleet.Settlement{{Rule: fast, Key: "paused", Pause: time.Minute}}}
	if err := s.Take(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Swap(context.Background(), "g", fleet.Record{Name: "r", Value: []byte("v"), Keep: time.Minute}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
}

// A clock that was ahead, by much or little, wrote the file. No limit regains units by that. No pause lasts longer
// than it would have, plus 10s.
func TestAClockBehindTheFileMintsNothing(t *testing.T) {
	for _, ahead := range []time.Duration{time.Millisecond, 9 * time.Second, 11 * time.Second, time.Hour, 30 * 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
		c, path := newHand(), file(t)
		c.Advance(ahead)
		used(t, c, path)
		c.Advance(-ahead)
		s := c.open(t, path)
		for _, r := range []*fleet.Rule{fast, roll, day} {
			if got := left(t, s, r); got != 2 {
				t.Errorf("%v ahead: %d left of %s, want 2", ahead, got, r.Name)
			}
		}
		if p := paused(t, s); p < 50*time.Second || p > time.Minute {
			t.Errorf("%v ahead: paused for %v, want what was left of a minute", ahead, p)
		}
		if all, _, err := s.Load(context.Background(), "g", []string{"r"}); err != nil || string(all[0].Value) != "v" {
			t.Errorf("%v ahead: the record is %+v, %v", ahead, all, err)
		}
		c.Advance(1100 * time.Millisecond) // the longest window of the two limits, plus a slot
		for _, r := range []*fleet.Rule{fast, roll} {
			if got := left(t, s, r); got != 10 {
				t.Errorf("%v ahead: %d left of %s after its time, want 10", ahead, got, r.Name)
			}
		}
		c.Advance(time.Minute)
		if p := paused(t, s); p != 0 {
			t.Errorf("%v ahead: still paused for %v after a minute", ahead, p)
		}
		if all, _, err := s.Load(context.Background(), "g", []string{"r"}); err != nil || all[0].Version != 0 {
			t.Errorf("%v ahead: the record is still there after a minute: %+v, %v", ahead, all, err)
		}
		c.Advance(24 * time.Hour)
		if got := left(t, s, day); got != 10 {
			t.Errorf("%v ahead: %d left of the day after it, want 10", ahead, got)
		}
	}
}

func paused(t *testing.T, s fleet.Store) time.Duration {
	t.Helper()
	return take(t, s, 0, fleet.Claim{Rule: fast, Key: "paused", Cost: 1}).Grants[0].Paused
}

// Limits refill while the file is closed.
func TestTimeGoesOnWhileTheFileIsClosed(t *testing.T) {
	c, path := newHand(), file(t)
	used(t, c, path)
	c.Advance(300 * time.Millisecond)
	s := c.open(t, path)
	if got := left(t, s, fast); got != 5 {
		t.Errorf("%d left after 300ms at 10 a second, want 5", got)
	}
	if got := left(t, s, roll); got != 2 {
		t.Errorf("%d left in a window of a second, want 2", got)
	}
	if got := left(t, s, day); got != 2 {
		t.Errorf("%d left of the day, want 2", got)
	}
}

// A jump of the wall clock while the file is open neither grants nor withholds units, because the store's time is
// monotonic. The store reads the wall clock once.
func TestAJumpOfTheWallClockIsNotTime(t *testing.T) {
	c := newHand()
	s := c.open(t, file(t))
	take(t, s, 8, claim(c.Now(), fast, 1))
	c.Advance(-time.Hour) // this clock has no monotonic reading
	if got := left(t, s, fast); got != 2 {
		t.Errorf("%d left, want 2", got)
	}
	_, before, _ := s.Load(context.Background(), "g", nil)
	c.Advance(time.Minute)
	if _, now, _ := s.Load(context.Background(), "g", nil); now.Before(before) {
		t.Errorf("the store's clock went back from %v to %v", before, now)
	}
}

// Versions do not repeat even if the clock was set back.
func TestVersionsNeverReturnAcrossClocks(t *testing.T) {
	c, path := newHand(), file(t)
	versions := make(map[int64]bool)
	for range 5 {
		s, err := filestore.OpenAt(path, quick, c.Now)
		if err != nil {
			t.Fatal(err)
		}
		r, ok, err := s.Swap(context.Background(), "g", fleet.Record{Name: "r", Keep: time.Second})
		if err != nil || !ok || versions[r.Version] {
			t.Fatalf("version %d, %v, %v", r.Version, ok, err)
		}
		versions[r.Version] = true
		c.Advance(2 * time.Second)
		if _, _, err := s.Swap(context.Background(), "g", fleet.Record{Name: "other", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		c.Advance(-time.Hour)
		if s, err = filestore.OpenAt(path, quick, c.Now); err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		c.Advance(time.Minute)
	}
}

// A clock that was ahead recorded usage of a quota. The usage may be from the present day, so it counts in the
// present day.
func TestAQuotaOfAnotherTimeCountsToday(t *testing.T) {
	c, path := newHand(), file(t)
	const ahead = 30*24*time.Hour + 15*time.Hour
	c.Advance(ahead - 10*time.Hour) // three o'clock in the morning, 31 days later
	used(t, c, path)
	c.Advance(12 * time.Hour)
	s, err := filestore.OpenAt(path, quick, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	take(t, s, 1, claim(c.Now(), slow, 1))
	closed(t, s)
	c.Advance(-ahead)
	if got := left(t, c.open(t, path), day); got != 2 {
		t.Errorf("%d left, want 2", got)
	}
}
