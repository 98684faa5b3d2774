package pause

import "time"

// A Reason says why there is a pause.
type Reason uint8

const (
	Rate  Reason = iota // the upstream asks to come back later
	Quota               // an amount for a day or longer is spent
	Hand                // a person has ordered it
	Here                // the same, for this process alone; no other hears of it
	Reasons
)

var reasons = [Reasons]string{"rate", "quota", "hand", "hand here"}

func (r Reason) String() string { return reasons[r] }

// Longest is the longest pause for a quota, or by hand: until the end of the longest
// month. That of a rate is configured.
const Longest = 31 * 24 * time.Hour

// A Span is a pause for one reason. Until is an instant of whoever keeps it.
type Span struct {
	Until time.Duration
	At    int64  // the stamp of when it was given; see Book
	By    string // the process that it was given to
	Known bool   // of a quota: the upstream said when it comes back; by hand: for how long was said

	// Slack is how much sooner than Until the pause may end for others, who know the
	// store's clock better; 0 for one that nobody else has.
	Slack time.Duration
	Fresh bool // it was given here, and has not come back from the store yet
}

// Sure is until when the pause is sure to hold everybody who has it.
func (s *Span) Sure() time.Duration { return s.Until - s.Slack }

// Same reports whether two spans are one and the same, perhaps by different clocks.
func (s *Span) Same(o *Span) bool { return s.At == o.At && s.By == o.By }

// join is two pauses as one. It ends with the later one, and is the one that is sure to
// hold longer: the other need not be told any more.
func join(a, b Span) Span {
	if a.Until == 0 || b.Until != 0 && (b.Sure() > a.Sure() || b.Sure() == a.Sure() && b.At >= a.At) {
		a, b = b, a
	}
	if more := b.Until - a.Until; more > 0 {
		a.Until, a.Slack = b.Until, a.Slack+more
	}
	return a
}

// An Entry is what holds one subject. What was lifted is as though it had never been
// said: pauses that were given before that hold nobody, however late one hears of them.
type Entry struct {
	Spans  [Reasons]Span
	Lifted int64 // the stamp of the latest lift; 0 if there was none
	here   int64 // that of the latest lift in this process alone
}

// Until is when the last of its pauses ends; 0 if there is none.
func (e *Entry) Until() (end time.Duration) {
	for i := range e.Spans {
		end = max(end, e.Spans[i].Until)
	}
	return end
}

// Reason is why there is a pause at the instant: for a quota if one is spent, whatever
// else there is, and else for what ends last.
func (e *Entry) Reason(now time.Duration) Reason {
	if e.Spans[Quota].Until > now {
		return Quota
	}
	return e.Last()
}

// Open reports whether nobody knows how long it will be: until a person says that calls go
// on.
func (e *Entry) Open() bool {
	why := e.Last()
	return why >= Hand && e.Spans[why].Until > 0 && !e.Spans[why].Known
}

// Last is the reason of what ends last.
func (e *Entry) Last() (why Reason) {
	for i := range e.Spans {
		if e.Spans[i].Until > e.Spans[why].Until {
			why = Reason(i)
		}
	}
	return why
}

// Merge takes over what another says of the same subject.
func (e *Entry) Merge(o *Entry) {
	for i := range e.Spans {
		e.Spans[i] = join(e.Spans[i], o.Spans[i])
	}
	e.Lifted = max(e.Lifted, o.Lifted)
}

// drop forgets the pauses that were given until the stamp, and reports whether there
// were any.
func (e *Entry) drop(stamp int64) (any bool) {
	for i := range e.Spans {
		if s := &e.Spans[i]; s.Until != 0 && s.At <= stamp {
			*s, any = Span{}, true
		}
	}
	return any
}

// expire forgets the pauses that are over at the instant, and reports whether there is
// none left.
func (e *Entry) expire(now time.Duration) (none bool) {
	none = true
	for i := range e.Spans {
		if e.Spans[i].Until <= now {
			e.Spans[i] = Span{}
		}
		none = none && e.Spans[i].Until == 0
	}
	return none
}

// A Set is entries by subject, as a process or a store keeps them.
type Set map[Subject]Entry

// Lifted is the stamp until which what was said of a subject is lifted.
func (s Set) Lifted(of Subject) int64 {
	stamp := max(s[of].Lifted, s[All()].Lifted)
	if of.Kind == Key {
		stamp = max(stamp, s[OfLimits(of.Name)].Lifted)
	}
	return stamp
}

// Settle drops what is lifted and what is over at the instant, and lifts that are older
// than the stamp: by then everything is over that they have lifted.
func (s Set) Settle(now time.Duration, stamp int64) {
	for of, e := range s {
		e.drop(s.Lifted(of))
		if e.expire(now) && max(e.Lifted, e.here) <= stamp {
			delete(s, of)
			continue
		}
		s[of] = e
	}
}
