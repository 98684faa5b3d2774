package filestore_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
)

// asleep returns the result of time.Now after the machine has slept: the wall clock has advanced, the monotonic
// reading has not.
func asleep(now time.Time, d time.Duration) time.Time {
	type reading struct {
		wall uint64
		ext  int64 // monotonic reading
		loc  *time.Location
	}
	t := now.Add(d)
	(*reading)(unsafe.Pointer(&t)).ext = (*reading)(unsafe.Pointer(&now)).ext
	return t
}

// An open file ignores the time that the machine sleeps: no units return, and windows end later. The next start
// uses the wall clock.
func TestASleepIsNoTime(t *testing.T) {
	var slept, on time.Duration
	begin, path := time.Now(), file(t)
	clock := func() time.Time { return asleep(begin.Add(on), slept) }
	if d := clock().Sub(begin); d != 0 {
		t.Fatalf("%v on", d)
	}
	s, err := filestore.OpenAt(path, quick, clock)
	if err != nil {
		t.Fatal(err)
	}
	take(t, s, 8, claim(begin, fast, 1), claim(begin, roll, 1), claim(begin, day, 1))
	slept = 48 * time.Hour
	for _, r := range []*fleet.Rule{fast, roll, day} {
		if got := left(t, s, r); got != 2 {
			t.Errorf("%d left of %s after a sleep, want 2", got, r.Name)
		}
	}
	on = 1100 * time.Millisecond
	if a, b := left(t, s, fast), left(t, s, roll); a != 10 || b != 10 {
		t.Errorf("%d and %d left a second later, want 10", a, b)
	}
	closed(t, s)
	if s, err = filestore.OpenAt(path, quick, clock); err != nil {
		t.Fatal(err)
	}
	if got := left(t, s, day); got != 10 {
		t.Errorf("%d left of the day after the next, want 10", got)
	}
	closed(t, s)
}
