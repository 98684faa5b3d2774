package fleet

import (
	"testing"
	"testing/synctest"
)

// beats is the heartbeat state of one member, in microseconds.
type beats struct {
	m    *Members
	beat Beat
}

func (b *beats) at(now int64) Standing {
	b.beat.Seq++
	a := b.m.Beat(now, &b.beat)
	b.beat.Ack, b.beat.Gen, b.beat.Part, b.beat.Until = a.No, a.Gen, a.Part, a.Until
	return a
}

// membersWithPart returns a group in which one member holds all parts at the instant.
func membersWithPart(life int64) (m *Members, b *beats, now int64) {
	const second = 1_000_000
	m = NewMembers(0, true)
	b = &beats{m: m, beat: Beat{Client: "a", Silence: second, Life: life, Window: 60 * second, Wish: 1, Goes: true}}
	for now = second; now <= 10*second; now += second / 3 {
		b.at(now)
	}
	return m, b, now
}

// TestDeadMemberOfRollingLimitCountsAsSpent reports the death of a member that may have used its part. All of
// that part counts as spent for a window. A member that died before it could use its part, or did not use it,
// has spent no units.
func TestDeadMemberOfRollingLimitCountsAsSpent(t *testing.T) {
	const second = 1_000_000
	for _, c := range []struct {
		silent int64 // how long before the report
		idle   bool
		stale  int64
	}{{second / 8, false, 0}, {3 * second, false, Whole}, {3 * second, true, 0}} {
		m, b, now := membersWithPart(10 * second)
		if b.beat.Part != Whole {
			t.Fatalf("the only member has %d millionths", b.beat.Part)
		}
		m.Beat(now+c.silent, &Beat{Client: "a", Seq: 1, Silence: 1, Life: 1, Leave: true, Dead: !c.idle, Idle: c.idle})
		var stale int64
		for _, s := range m.Stale {
			stale += s.Part
		}
		if (c.stale == 0) != (len(m.Falls) == 0) {
			t.Errorf("dead after %d us of silence, idle %v: %d falls of what was out", c.silent, c.idle, len(m.Falls))
		}
		if stale != c.stale || m.Out != 0 {
			t.Errorf("dead after %d us of silence: %d counts as spent and %d is out, want %d and 0", c.silent, stale, m.Out, c.stale)
		}
	}
}

// TestStoreThatComesBackKeepsParts makes a store unavailable for longer than it reserves parts. When it is
// back, it reserves them for that time again, until each member has sent a heartbeat.
func TestStoreThatComesBackKeepsParts(t *testing.T) {
	const second = 1_000_000
	m, b, now := membersWithPart(10 * second)
	back := now + 3600*second
	other := &beats{m: m, beat: Beat{Client: "b", Silence: second, Life: 10 * second, Wish: 1, Goes: true}}
	for at := back; at < back+9*second; at += second / 3 {
		if a := other.at(at); a.Part > 0 || a.Out != Whole {
			t.Fatalf("%d us after the store came back: %+v, want all of it out", at-back, a)
		}
	}
	if a := b.at(back + 9*second); m.Rows["a"].Part != Whole || a.Unknown != 0 {
		t.Errorf("the member that was cut off: %+v with %d, want it to have its part still", a, m.Rows["a"].Part)
	}

	m, _, now = membersWithPart(10 * second)
	back = now + 3600*second
	other = &beats{m: m, beat: Beat{Client: "b", Silence: second, Life: 10 * second, Wish: 1, Goes: true}}
	for at := back; at < back+11*second; at += second / 3 {
		other.at(at)
	}
	if m.Out != 0 || other.beat.Part != Whole {
		t.Errorf("11 s after the store came back %d is out and the new member has %d, want 0 and all", m.Out, other.beat.Part)
	}
}

// TestPartIsNotedBeforeItIsUsed kills a process that has used its part of a rolling limit during an outage. Its
// member file contains that, and the store counts the part as spent.
func TestPartIsNotedBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutage(t, 1, rollingLimit(1000, 10*sec))
		w.o.Members = t.TempDir()
		w.join(90)
		away(30*sec, 36*sec, false)(w)
		w.at(35*sec+sec/2, w.procs[0].kill)
		w.at(36*sec+sec/2, func() { w.join(400) })
		w.end(60 * sec)
		if n, where := w.over(); n > 0 {
			t.Errorf("over by %d %s", n, where)
		}
		if n := w.used(31*sec, 35*sec); n == 0 {
			t.Error("the part was not used")
		}
	})
}
