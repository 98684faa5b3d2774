package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A server that was promoted may have a clock that is behind that of the one
// before it.
func TestClockThatRunsBackwards(t *testing.T) {
	for _, back := range []time.Duration{5 * time.Second, time.Hour, 1000 * time.Hour} {
		s, clock, advance := driven(t)
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		now := time.UnixMicro(clock.Load())
		day := limit.Windows{Start: now.Add(-2000 * time.Hour), End: now.Add(2000 * time.Hour), Next: now.Add(6000 * time.Hour)}
		claims := []limit.Claim{claim(bucketOf("b", 10, time.Minute, 10), 1), claim(rollingOf("r", 10, time.Minute), 1), claim(fixedOf("q", 1000), 1)}
		claims[2].Windows = day
		a := ask(claims...)
		a.Copies = 10
		if take(t, s, a); a.Granted != 10 {
			t.Fatalf("granted %d, want 10", a.Granted)
		}
		advance(-back)
		a = ask(claims[:2]...)
		if take(t, s, a); a.Granted != 0 || a.Grants[0].Left != 0 || a.Grants[1].Left != 0 {
			t.Errorf("%v back: granted %d, %+v; nothing was earned", back, a.Granted, a.Grants)
		}
		if got := left(t, s, claims[2]); got != 990 {
			t.Errorf("%v back: %d left of a quota, want 990", back, got)
		}
		// Nobody is locked out until the old clock is reached, but for ten seconds.
		advance(77 * time.Second)
		if got := take(t, s, ask(claims[:2]...)).Granted; got != 1 {
			t.Errorf("%v back and 77 seconds later: granted %d, want 1", back, got)
		}
	}
}

func TestPauseOfAWrongClockEnds(t *testing.T) {
	s, _, advance := driven(t)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	b := claim(bucketOf("b", 10, time.Second, 10), 1)
	a := ask(b)
	a.Settle = []limit.Settlement{{Rule: b.Rule, Key: "k", Pause: time.Minute}}
	take(t, s, a)
	advance(-5 * time.Hour)
	if g := take(t, s, ask(b)).Grants[0]; g.Paused <= 0 || g.Paused > time.Minute {
		t.Errorf("paused for %v, want a minute", g.Paused)
	}
}

func TestMarkOfAWrongClockIsRenewed(t *testing.T) {
	s, _, advance := driven(t)
	advance(5 * time.Hour)
	left(t, s, claim(bucketOf("b", 10, time.Second, 10), 1))
	advance(-5 * time.Hour)
	b := claim(bucketOf("c", 10, time.Second, 10), 1)
	left(t, s, b)
	advance(unknownFor)
	left(t, s, b)
	advance(time.Second)
	if got := left(t, s, b); got != 10 {
		t.Errorf("%d left a second later, want 10", got)
	}
}
