package pause

import (
	"testing"
	"time"
)

// A later hint with a shorter wait does not shorten an earlier one.
func TestAPauseIsNeverMadeShorter(t *testing.T) {
	for _, why := range []Reason{Rate, Quota, Hand, Here} {
		var b Book
		for _, until := range []time.Duration{10 * time.Second, 3 * time.Second, 0} {
			b.Add(time.Second, All(), why, Span{Until: until})
		}
		if e := b.In(2*time.Second, All()); e.Until() != 10*time.Second {
			t.Errorf("%v: paused until %v, want 10s", why, e.Until())
		}
		b.Add(2*time.Second, All(), why, Span{Until: 12 * time.Second})
		if e := b.In(2*time.Second, All()); e.Until() != 12*time.Second {
			t.Errorf("%v: paused until %v, want 12s", why, e.Until())
		}
	}
}

// A pause that starts after a lift was received has a later stamp, even if clocks differ.
func TestStampsFollowWhatWasHeard(t *testing.T) {
	now := time.Hour
	for _, ahead := range []time.Duration{0, time.Millisecond, time.Minute} {
		var b Book
		b.Share("me", 0)
		b.Hear(now, Set{All(): {Lifted: int64((now + ahead) / time.Microsecond)}})
		b.Add(now, All(), Rate, Span{Until: 2 * now})
		b.Add(now, OfPool("p"), Quota, Span{Until: 2 * now})
		said, _ := b.Known(now)
		for _, of := range []Subject{All(), OfPool("p")} {
			e := said[of]
			if in := b.In(now, of); e.Until() != 2*now || in.Until() != 2*now {
				t.Errorf("lifted %v ahead: %v is not held: %+v", ahead, of, e)
			}
		}
		// A lift also ends pauses with stamps in the future.
		b.Hear(now, Set{OfPool("q"): {Spans: [Reasons]Span{{Until: 2 * now, At: int64((now + ahead + time.Second) / time.Microsecond), By: "other"}}}})
		if lifted := b.Lift(now, All(), false); len(lifted) != 3 {
			t.Errorf("%v ahead: lifted %v", ahead, lifted)
		}
	}
}

// A pause may end after a received one, but not certainly by the clocks of other processes. It is then shared with
// them, and does not shorten the received one here.
func TestWhatOthersMayHoldShorterIsToldThem(t *testing.T) {
	const until, slack = time.Minute, 50 * time.Millisecond
	for _, why := range []Reason{Rate, Quota, Hand} {
		for _, sooner := range []time.Duration{slack, slack - 1, 1, 0} {
			var b Book
			b.Share("me", 0)
			heard := Entry{}
			heard.Spans[why] = Span{Until: until, Slack: slack, At: 1, By: "other"}
			b.Hear(time.Second, Set{All(): heard})
			b.Add(2*time.Second, All(), why, Span{Until: until - sooner})
			e := b.In(2*time.Second, All())
			s, told := e.Spans[why], b.Changes() == 1
			if s.Until != until || told != (sooner < slack) || told != s.Fresh || told && s.Sure() != until-sooner {
				t.Errorf("%v, given to end %v before what was heard: %+v, told %v", why, sooner, s, told)
			}
			// It stays marked for sharing when the other pause is received again, by a better clock.
			heard.Spans[why].Until += time.Millisecond
			heard.Spans[why].Slack += time.Millisecond
			b.Hear(3*time.Second, Set{All(): heard})
			e = b.In(3*time.Second, All())
			if s := e.Spans[why]; s.Until != until+time.Millisecond || s.Fresh != told || told && s.Sure() != until-sooner {
				t.Errorf("%v, heard again: %+v, want it to be told %v", why, s, told)
			}
		}
	}
}
