package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A claim may be granted Claim.Cold units of a limit whose usage the store lost, at most what the limit holds when
// unused. Without Cold it is granted nothing. The granted units still count when the store knows more.
func TestClaimIsGrantedItsColdRoom(t *testing.T) {
	for _, of := range []func(now time.Time) fleet.Claim{
		func(time.Time) fleet.Claim { return claim(bucketOf("c", 100, time.Second, 100), 1) },
		func(time.Time) fleet.Claim { return claim(rollingOf("c", 100, time.Minute), 1) },
		func(now time.Time) fleet.Claim { return quota(fixedOf("c", 100), 1, now, time.Hour) },
	} {
		s, clock, advance := driven(t)
		advance(time.Second) // into a window that does not end during the test
		k := of(time.UnixMicro(clock.Load()))
		grants := func(room, copies, extra int64) (got int64, g fleet.Grant) {
			k.Cold, k.Extra = room, extra
			a := ask(k)
			a.Copies = copies
			take(t, s, a)
			return a.Granted + a.Grants[0].Extra, a.Grants[0]
		}
		what := k.Rule.Shape
		if got, g := grants(0, 200, 0); got != 0 || !g.Cold {
			t.Errorf("%v: granted %d without room, %+v", what, got, g)
		}
		if got, g := grants(30, 200, 0); got != 30 || g.Left != 0 {
			t.Errorf("%v: granted %d, %d left of a room of 30", what, got, g.Left)
		}
		if got, g := grants(10, 2, 8); got != 4 || g.Left != 6 {
			t.Errorf("%v: granted %d with a block, %d left of a room of 10, want 4 and 6", what, got, g.Left)
		}
		if got, g := grants(fleet.ColdFull, 200, 0); got != 66 || g.Left != 0 || g.Cold {
			t.Errorf("%v: granted %d without a bound, %+v; want 66, all that was left", what, got, g)
		}
		if got, _ := grants(fleet.ColdFull, 200, 0); got != 0 {
			t.Errorf("%v: granted %d of a limit that is used up", what, got)
		}
		advance(unknownFor + time.Microsecond)
		if k.Rule.Shape != limit.Bucket {
			if got, _ := grants(fleet.ColdFull, 200, 0); got != 0 {
				t.Errorf("%v: granted %d once no process can hold a part: what was granted counts in the window", what, got)
			}
		}
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if got, _ := grants(0, 200, 0); k.Rule.Shape != limit.Bucket && got != 0 {
			t.Errorf("%v: granted %d once the group was said to be new: what was granted counts", what, got)
		}
	}
}

// Usage of a quota that a process knows counts against its cold units, but not against a limit that starts full.
func TestColdRoomOfQuotaCountsWhatWasSeen(t *testing.T) {
	s, clock, _ := driven(t)
	k := quota(fixedOf("q", 100), 1, time.UnixMicro(clock.Load()), time.Hour)
	k.Seen, k.Cold = 90, 50
	a := ask(k)
	a.Copies = 50
	if take(t, s, a); a.Granted != 10 {
		t.Errorf("granted %d of a room of 50 where 90 of 100 are known to have gone", a.Granted)
	}
	k.Key, k.Cold = "another", fleet.ColdFull
	b := ask(k)
	b.Copies = 200
	if take(t, s, b); b.Granted != 100 {
		t.Errorf("granted %d of a quota that starts full, want 100", b.Granted)
	}
}
