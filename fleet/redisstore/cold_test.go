package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/breakers"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// unknownFor is how long an unknown process may hold a part.
const unknownFor = fleet.UnknownFor

func TestUnknownBucketIsOutAndThenFills(t *testing.T) {
	s, _, advance := driven(t)
	b := claim(bucketOf("b", 10, time.Second, 20), 1)
	a := take(t, s, ask(b))
	if a.Granted != 0 || a.Grants[0].Left != 0 || a.Grants[0].Wait != time.Second {
		t.Errorf("at first: granted %d, %+v; want nothing, and a look in a second: who holds it may be heard at any time", a.Granted, a.Grants[0])
	}
	advance(unknownFor - time.Microsecond)
	if got := left(t, s, b); got != 0 {
		t.Errorf("just before: %d left, want none", got)
	}
	advance(time.Microsecond)
	left(t, s, b)
	advance(500 * time.Millisecond)
	other := b
	other.Key = "another that may have been there before"
	for _, k := range []fleet.Claim{b, other} {
		if got := left(t, s, k); got != 5 {
			t.Errorf("key %q half a second later: %d left, want 5", k.Key, got)
		}
	}
	advance(1500 * time.Millisecond)
	if got := left(t, s, other); got != 20 {
		t.Errorf("two seconds later: %d left, want all 20", got)
	}
}

func TestUnknownRollingIsOutAndThenEmptyForAWindow(t *testing.T) {
	s, _, advance := driven(t)
	r := claim(rollingOf("r", 5, time.Minute), 1)
	if got := left(t, s, r); got != 0 {
		t.Errorf("at first: %d left, want none", got)
	}
	advance(unknownFor + 59*time.Second)
	if got := left(t, s, r); got != 0 {
		t.Errorf("59 seconds after the last part can have been spent: %d left, want none", got)
	}
	advance(1300 * time.Millisecond) // plus one slot
	if got := left(t, s, r); got != 5 {
		t.Errorf("a minute after: %d left, want all 5", got)
	}
}

// A process shows its part to a server that lost its data. Then the complete supply is known.
func TestWhoShowsAPartNeedNotWait(t *testing.T) {
	s, clock, advance := driven(t)
	b := claim(bucketOf("b", 10, time.Second, 20), 1)
	left(t, s, b)
	own := fleet.Beat{Group: group, Client: "c", Silence: 1e6, Life: 3e8, Gen: 7, Part: fleet.Whole, Until: clock.Load() + 1e8}
	for range 3 {
		own.Seq++
		a, err := s.Beat(t.Context(), &own)
		if err != nil || a.Unknown != 0 {
			t.Fatalf("%+v, %v: want nothing unknown", a, err)
		}
		own.Ack, own.Gen, own.Part, own.Until = a.No, a.Gen, a.Part, a.Until
		advance(300 * time.Millisecond)
	}
	if own.Part != fleet.Whole || left(t, s, b) < 2 {
		t.Errorf("part %d, %d left; want all, and some of 20 after half a second", own.Part, left(t, s, b))
	}
}

// One process's count of a quota may be too low, because other processes may have used the quota since.
func TestAnUnknownQuotaIsSpentWhateverWasSeen(t *testing.T) {
	s, clock, advance := driven(t)
	q := fixedOf("q", 100)
	now := func() time.Time { return time.UnixMicro(clock.Load()) }
	unseen, seen := quota(q, 1, now(), time.Hour), quota(q, 1, now(), time.Hour)
	seen.Seen = 30
	for _, k := range []fleet.Claim{unseen, seen, unseen} {
		if a := take(t, s, ask(k)); a.Granted != 0 || a.Grants[0].Left != 0 || !a.Grants[0].Cold || a.Grants[0].Wait != a.Grants[0].Reset {
			t.Errorf("%d seen: granted %d of a quota of which nothing is known, %+v", k.Seen, a.Granted, a.Grants[0])
		}
	}
	advance(time.Hour)
	another := quota(q, 1, now(), time.Hour)
	another.Key = "another"
	for _, k := range []fleet.Claim{another, quota(q, 1, now(), time.Hour)} {
		if g := take(t, s, ask(k)).Grants[0]; g.Left != 99 || g.Cold {
			t.Errorf("in the next window: %+v, want 99 left", g)
		}
	}
}

// An operator can declare a group new at any time, regardless of earlier beats and asks. Usage that a process knows
// still counts.
func TestAQuotaThatIsSaidToBeNewHasWhatWasSeen(t *testing.T) {
	s, clock, _ := driven(t)
	k := quota(fixedOf("q", 100), 1, time.UnixMicro(clock.Load()), time.Hour)
	a := ask(k)
	a.Settle = []fleet.Settlement{{Rule: k.Rule, Key: k.Key, Windows: k.Windows, Owe: 20}}
	if take(t, s, a); a.Granted != 0 {
		t.Errorf("granted %d of a quota of which nothing is known", a.Granted)
	}
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if got := left(t, s, k); got != 80 {
		t.Errorf("%d left, want 80: 20 went meanwhile", got)
	}
	if k.Seen = 30; left(t, s, k) != 70 {
		t.Errorf("%d left, want 70: 30 are known to have gone", left(t, s, k))
	}
}

// A quota of unknown usage does not gain units when the limit changes to another kind.
func TestAnUnknownQuotaIsSpentAsALimitOfAnotherKind(t *testing.T) {
	s, clock, advance := driven(t)
	q := quota(fixedOf("q", 100), 1, time.UnixMicro(clock.Load()), 10*time.Hour)
	a := ask(q)
	a.Settle = []fleet.Settlement{{Rule: q.Rule, Key: q.Key, Windows: q.Windows, Owe: 20}}
	take(t, s, a)
	own := fleet.Beat{Group: group, Client: "c", Silence: 1e6, Life: 3e8, Part: fleet.Whole, Until: clock.Load() + 1e8}
	for own.Seq < 3 { // no other process holds a part
		own.Seq++
		answer, err := s.Beat(t.Context(), &own)
		if err != nil {
			t.Fatal(err)
		}
		own.Ack = answer.No
		advance(300 * time.Millisecond)
	}
	for _, r := range []*fleet.Rule{rollingOf("q", 100, time.Hour), bucketOf("q", 1, time.Hour, 100)} {
		if got := left(t, s, claim(r, 1)); got != 0 {
			t.Errorf("%v: %d left, want none", r.Shape, got)
		}
	}
}

func TestNewGroupIsFull(t *testing.T) {
	s, clock, _ := driven(t)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	claims := []fleet.Claim{claim(bucketOf("b", 1, time.Hour, 7), 1), claim(rollingOf("r", 7, time.Hour), 1), quota(fixedOf("q", 7), 1, time.UnixMicro(clock.Load()), time.Hour)}
	for _, k := range claims {
		if got := left(t, s, k); got != 7 {
			t.Errorf("%s: %d left, want 7", k.Rule.Name, got)
		}
	}
}

func TestRestartedServerIsCold(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	if got := left(t, s, b); got != 100 {
		t.Fatalf("%d left, want 100", got)
	}
	srv.Kill()
	srv.Restart()
	a := ask(b)
	eventually(t, "an answer of the new server", func() bool { return s.Take(t.Context(), a) == nil })
	if a.Granted != 0 {
		t.Error("granted by a server that has forgotten everything")
	}
}

// A tally is not a limit. A server without data has counted nothing, regardless of parts.
func TestATallyBeginsWithNone(t *testing.T) {
	s, _, _ := driven(t)
	r := rollingOf("r", 5, time.Minute)
	r.Tally = true
	a := ask(claim(r, 1))
	a.Copies, a.Settle = 0, []fleet.Settlement{{Rule: r, Key: "k", Owe: 1}}
	if got := take(t, s, a).Grants[0].Left; got != 4 {
		t.Errorf("%d left after one was counted, want 4", got)
	}
}

// One failed call does not open the breaker of a process with a new store. The configured number of failures does.
func TestANewServerHasSeenNoFailures(t *testing.T) {
	s := open(t, servers.Redis(t).URL())
	b := breaker.New("", breaker.Config{Failures: 5}, nil)
	all := breakers.New(breakers.Config{Store: s, Group: group, Timeout: 10 * time.Second}, b)
	all.Sync(t.Context())
	for n := range 5 {
		if got := b.State().Phase; got != breaker.Closed {
			t.Fatalf("after %d failures the breaker is %v, want closed", n, got)
		}
		now := clock.System.Now()
		p, _, _ := b.Admit(now)
		b.Report(now, p, outcome.Outcome{Class: outcome.Failed})
		all.Sync(t.Context())
	}
	if got := b.State().Phase; got != breaker.Open {
		t.Errorf("after 5 failures the breaker is %v, want open", got)
	}
}

// Limits that are stored before a group is declared new count as exhausted. Afterwards they count only the actual
// usage, here a debt of 3 units.
func TestInitTakesBackWhatWasOnlyGuessed(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim func(now time.Time) fleet.Claim
	}{
		{"bucket", func(time.Time) fleet.Claim { return claim(bucketOf("b", 1, time.Hour, 100), 1) }},
		{"rolling", func(time.Time) fleet.Claim { return claim(rollingOf("r", 100, time.Hour), 1) }},
		{"quota", func(now time.Time) fleet.Claim { return quota(fixedOf("q", 100), 1, now, 24*time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, clock, advance := driven(t)
			advance(time.Second)
			k := c.claim(time.UnixMicro(clock.Load()))
			a := ask(k)
			a.Settle = []fleet.Settlement{{Rule: k.Rule, Key: k.Key, Windows: k.Windows, Owe: 3}}
			if take(t, s, a); a.Granted != 0 || a.Grants[0].Left != 0 || !a.Grants[0].Cold {
				t.Errorf("before: granted %d, %+v; want nothing, as nothing is known", a.Granted, a.Grants[0])
			}
			advance(time.Second)
			if err := s.Init(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				b := ask(k)
				b.Copies = 0
				if take(t, s, b); b.Grants[0].Left != 97 || b.Grants[0].Cold {
					t.Errorf("when it was said to be new: %+v; want 97 of 100", b.Grants[0])
				}
			}
		})
	}
}

// A group can be declared new late. Time and refused asks before that take nothing from its limits.
func TestInitLateIsInit(t *testing.T) {
	for _, late := range []time.Duration{0, 100 * time.Second, unknownFor, unknownFor + 20*time.Second} {
		t.Run(late.String(), func(t *testing.T) { initLate(t, late) })
	}
}

func initLate(t *testing.T, late time.Duration) {
	s, clock, advance := driven(t)
	advance(time.Second)
	beat := fleet.Beat{Group: group, Client: "c", Silence: 3e6, Life: unknownFor.Microseconds()}
	claims := []fleet.Claim{claim(bucketOf("b", 100, 24*time.Hour, 100), 1), claim(rollingOf("r", 100, time.Hour), 1), quota(fixedOf("q", 100), 1, time.UnixMicro(clock.Load()), 24*time.Hour)}
	for d := time.Duration(0); d <= late; d += time.Second {
		beat.Seq++
		a, err := s.Beat(t.Context(), &beat)
		if err != nil || a.Since == 0 || (a.Unknown == fleet.Whole) != (d < unknownFor) {
			t.Fatalf("after %v: %+v, %v: want all unknown for %v", d, a, err, unknownFor)
		}
		beat.Ack, beat.Gen, beat.Part, beat.Until = a.No, a.Gen, a.Part, a.Until
		for _, k := range claims {
			b := ask(k)
			if d >= unknownFor {
				b.Copies = 0
			}
			take(t, s, b)
			if warm := d >= unknownFor && k.Rule.Shape == limit.Bucket; b.Granted != 0 || b.Grants[0].Cold == warm {
				t.Fatalf("%s after %v: granted %d, %+v", k.Rule.Name, d, b.Granted, b.Grants[0])
			}
		}
		advance(time.Second)
	}
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	beat.Seq++
	if a, err := s.Beat(t.Context(), &beat); err != nil || a.Unknown != 0 || a.Since != 0 {
		t.Errorf("%+v, %v: want all known", a, err)
	}
	for _, k := range claims {
		if got := left(t, s, k); got != 100 {
			t.Errorf("%s: %d left, want 100", k.Rule.Name, got)
		}
	}
}

// The assumed usage of a bucket drains. Units granted since are actual usage.
func TestWhatWasGrantedIsNoGuess(t *testing.T) {
	s, _, advance := driven(t)
	k := claim(bucketOf("b", 100, 1000*time.Second, 100), 10)
	left(t, s, k)
	advance(unknownFor)
	left(t, s, k)
	advance(700 * time.Second)
	if a := take(t, s, ask(k)); a.Granted != 1 || a.Grants[0].Left != 60 {
		t.Fatalf("granted %d, %+v; want 1 of the 70 that have come", a.Granted, a.Grants[0])
	}
	advance(50 * time.Second)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if got := left(t, s, k); got != 95 {
		t.Errorf("%d left, want 95: 10 were granted, and 5 have come since", got)
	}
}

// The same, for a limit that changes before the group is declared new.
func TestInitTakesBackWhatWasGuessedOfALimitThatWasChanged(t *testing.T) {
	s, clock, advance := driven(t)
	now := time.UnixMicro(clock.Load())
	claims := map[string]fleet.Claim{
		"bucket":        claim(bucketOf("l", 1, time.Hour, 100), 1),
		"other bucket":  claim(bucketOf("l", 7, time.Hour, 100), 1),
		"third bucket":  claim(bucketOf("l", 3, 7*time.Minute, 100), 1),
		"rolling":       claim(rollingOf("l", 100, time.Hour), 1),
		"other rolling": claim(rollingOf("l", 100, 2*time.Hour), 1),
		"quota":         quota(fixedOf("l", 100), 1, now, 24*time.Hour),
	}
	for from, before := range claims {
		for to, after := range claims {
			key := from + " to " + to
			before.Key, after.Key = key, key
			a := ask(before)
			a.Settle = []fleet.Settlement{{Rule: before.Rule, Key: key, Windows: before.Windows, Owe: 3}}
			if take(t, s, a); a.Granted != 0 {
				t.Errorf("%s: granted %d, want nothing, as nothing is known", key, a.Granted)
			}
			if b := take(t, s, ask(after)); b.Granted != 0 {
				t.Errorf("%s: granted %d when it was changed, want nothing", key, b.Granted)
			}
		}
	}
	advance(time.Second)
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	for from := range claims {
		for to, after := range claims {
			after.Key = from + " to " + to
			for range 2 {
				if n := left(t, s, after); n < 95 || n > 97 {
					t.Errorf("%s: %d of 100 left when it was said to be new, want 97, or 2 less for what a change rounds", after.Key, n)
				}
			}
		}
	}
}
