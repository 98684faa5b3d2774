package dynamostore

import (
	"testing"
	"time"
	"unsafe"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// The time in DynamoDB's responses jumps. If it is set back by an hour, earlier timestamps count as exhausted for
// an hour.
func TestTheServersClockJumps(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	t.Parallel()
	storetest.TestJumps(t, time.Hour, func(_ *testing.T, now func() time.Time) fleet.Store {
		return farFrom(newFake(now), time.Now)
	})
}

// The clock of the processes' machine is set. The processes use DynamoDB's clock and their own monotonic clocks
// instead.
func TestTheMachinesClockJumps(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	t.Parallel()
	storetest.TestJumps(t, 2*time.Second, func(_ *testing.T, now func() time.Time) fleet.Store {
		return farFrom(newFake(time.Now), func() time.Time { return onTheWall(time.Now(), now()) })
	})
}

func farFrom(f *fake, now func() time.Time) *Store {
	f.wait = func() { time.Sleep(500 * time.Microsecond) }
	return New(clientOf(f), "weir", Options{now: now})
}

// onTheWall returns the result of time.Now after the wall clock was set: it shows another time with the same
// monotonic reading.
func onTheWall(now, shown time.Time) time.Time {
	type reading struct {
		wall uint64
		ext  int64 // monotonic reading
		loc  *time.Location
	}
	t := now.Add(shown.Sub(now))
	(*reading)(unsafe.Pointer(&t)).ext = (*reading)(unsafe.Pointer(&now)).ext
	return t
}

func TestAClockOnTheWallIsSet(t *testing.T) {
	now := time.Now()
	set := onTheWall(now, now.Add(time.Hour))
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != time.Hour {
		t.Errorf("%v on, %v on the wall", set.Sub(now), set.Round(0).Sub(now.Round(0)))
	}
}

// A clock that was an hour ahead exhausted a limit. The limit recovers when the correct clock has reached that
// time.
func TestAWrongClockIsOverWhenTheRightOneHasComeAsFar(t *testing.T) {
	hand := storetest.NewHand()
	s := New(clientOf(newFake(hand.Now)), "weir", Options{exact: hand.Now})
	hand.Advance(time.Hour)
	if err := take(t, s, ask(100, "k")); err != nil {
		t.Fatal(err)
	}
	hand.Advance(-time.Hour)
	for range 61 {
		a := ask(1, "k")
		if err := take(t, s, a); err != nil || a.Granted != 0 {
			t.Fatalf("granted %d, %v", a.Granted, err)
		}
		hand.Advance(time.Minute)
	}
	hand.Advance(100 * time.Hour) // one unit refills in this time
	a := ask(1, "k")
	if err := take(t, s, a); err != nil || a.Granted != 1 {
		t.Errorf("granted %d, %v; want 1", a.Granted, err)
	}
}
