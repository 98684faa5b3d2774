package dynamostore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// A copy without members is valid for longer, because a new member holds no part for five seconds.
func TestCopyOfMembersIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		s := New(clientOf(f), "weir", Options{})
		defer s.Close()
		b := fleet.Beat{Group: "g", Client: "a", Seq: 1, Silence: leastSilence.Microseconds(), Life: 10e6}
		if _, err := s.Beat(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		r := s.roster("g")
		if _, _, good, err := r.copied(s.clock.read()); !good || err != nil {
			t.Errorf("a copy is not good: %v", err)
		}
		time.Sleep(copyLife)
		if _, _, good, _ := r.copied(s.clock.read()); good {
			t.Errorf("a copy is good after %v", copyLife)
		}
		if p := r.supply(s.clock.read()); p.Out != fleet.Whole {
			t.Errorf("by an old copy %d of the limit is out, want all", p.Out)
		}
		if err := take(t, s, ask(1, "k")); err != nil {
			t.Fatal(err)
		}
		if _, _, good, _ := r.copied(s.clock.read()); !good {
			t.Error("an ask went by an old copy")
		}
	})
}

func TestMemberIsSilentByTheLowerBound(t *testing.T) {
	now := instant{lo: 1_000_000_000, hi: 1_000_200_000, label: 1_000_200_000}
	m := newMembership(now.hi)
	m.beat(now, &fleet.Beat{Client: "a", Seq: 1, Silence: 1_200_000, Life: 10e6}, false)
	if got := m.Rows["a"].Last; got != now.lo {
		t.Errorf("answered at %d, want the lower bound %d", got, now.lo)
	}
	if got, want := m.Rows["a"].Until, now.hi+10_000_000+lifeSlack.Microseconds(); got != want {
		t.Errorf("its part is kept until %d, want %d", got, want)
	}
}
