package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// The clock of a promoted server may be behind the clock of the previous primary.
func TestClockThatRunsBackwards(t *testing.T) {
	for _, back := range []time.Duration{5 * time.Second, time.Hour, 1000 * time.Hour} {
		s, clock, advance := driven(t)
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		now := time.UnixMicro(clock.Load())
		day := limit.Windows{Start: now.Add(-2000 * time.Hour), End: now.Add(2000 * time.Hour), Next: now.Add(6000 * time.Hour)}
		claims := []fleet.Claim{claim(bucketOf("b", 10, time.Minute, 10), 1), claim(rollingOf("r", 10, time.Minute), 1), claim(fixedOf("q", 1000), 1)}
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
		// No caller is stopped until the old clock is reached, only for ten seconds.
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
	a.Settle = []fleet.Settlement{{Rule: b.Rule, Key: "k", Pause: time.Minute}}
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

// beater sends the beats of a process. Each beat contains the latest answer.
type beater struct{ fleet.Beat }

func (b *beater) beat(t *testing.T, s fleet.Store) fleet.Standing {
	t.Helper()
	b.Seq++
	a, err := s.Beat(t.Context(), &b.Beat)
	if err != nil {
		t.Fatal(err)
	}
	b.Ack, b.Gen, b.Part, b.Until = a.No, a.Gen, a.Part, a.Until
	return a
}

func client(name string) *beater {
	return &beater{fleet.Beat{Group: group, Client: name, Silence: 1e6, Life: 1e7, Window: 6e7, Wish: 1}}
}

// The units that a process may have spent of a rolling limit before it died count for one window. A clock that was
// wrong does not extend this.
func TestAPartThatDiedByAWrongClockIsOverInTime(t *testing.T) {
	s, _, advance := driven(t)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	r := claim(rollingOf("r", 100, time.Minute), 1)
	for c, n := client("dies"), 0; n < 40; n++ {
		c.beat(t, s)
		advance(250 * time.Millisecond)
	}
	d := client("lives")
	lives := func(n int) {
		for range n {
			d.beat(t, s)
			advance(250 * time.Millisecond)
		}
	}
	if lives(80); left(t, s, r) > 50 {
		t.Fatalf("%d left of 100 just after a part of most of it died", left(t, s, r))
	}
	advance(-1000 * time.Hour)
	if lives(4 * (10 + 60 + 5)); left(t, s, r) != 100 {
		t.Errorf("%d left of 100 more than a minute after all parts were known again", left(t, s, r))
	}
}

// The supply's clock is far behind because many parts were out. It follows a clock that is set back.
func TestABucketDrainsAfterAWrongClockThoughMuchWasOut(t *testing.T) {
	s, _, advance := driven(t)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	c := client("c")
	c.Life = 4 * 3600e6
	for range 40 {
		c.beat(t, s)
		advance(250 * time.Millisecond)
	}
	advance(3 * time.Hour) // the process is silent, so all of the supply is out
	b := claim(bucketOf("b", 1, time.Second, 10), 1)
	take(t, s, ask(b))
	c.beat(t, s)
	advance(100 * time.Millisecond)
	c.beat(t, s)
	a := ask(b)
	if a.Copies = 10; take(t, s, a).Granted > 10 {
		t.Fatal("more than there is")
	}
	advance(-10 * time.Minute)
	left(t, s, b) // now the usage is dated to the present
	lives := func(n int) {
		for range n {
			c.beat(t, s)
			advance(250 * time.Millisecond)
		}
	}
	if lives(120); left(t, s, b) != 10 {
		t.Errorf("%d left of 10, at one a second, half a minute after the clock was set back", left(t, s, b))
	}
}
