package pause

import "time"

// A Reason states why there is a pause.
type Reason uint8

const (
	Rate  Reason = iota // the upstream asks to come back later
	Quota               // an amount for a day or longer is used up
	Hand                // an operator has ordered it
	Here                // an operator has ordered it for this process alone
	Reasons
)

var reasons = [Reasons]string{"rate", "quota", "manual", "manual here"}

func (r Reason) String() string { return reasons[r] }

// Longest is the longest pause for a quota or by an operator: until the end of the longest month. The longest pause
// for a rate is configured.
const Longest = 31 * 24 * time.Hour

// A Span is a pause for one reason. Until is an instant of the process that holds it.
type Span struct {
	Until time.Duration
	At    int64  // stamp of its creation; see Book
	By    string // the process that learned of it
	Known bool   // for a quota, the upstream sent the reset time; for an operator, a duration was given

	// Slack is how much earlier than Until the pause may end for other processes, which know the store's clock
	// better. It is 0 if no other process has the pause.
	Slack time.Duration
	Fresh bool // it began here, and was not read back from the store yet
}

// Sure returns the instant until which the pause certainly holds in every process that knows it.
func (s *Span) Sure() time.Duration { return s.Until - s.Slack }

// Same reports whether two spans are the same pause, perhaps by different clocks.
func (s *Span) Same(o *Span) bool { return s.At == o.At && s.By == o.By }

// join merges two pauses. The result ends with the later one. Its identity comes from the pause that surely holds
// longer, so that the other need not be shared any more.
func join(a, b Span) Span {
	if a.Until == 0 || b.Until != 0 && (b.Sure() > a.Sure() || b.Sure() == a.Sure() && b.At >= a.At) {
		a, b = b, a
	}
	if more := b.Until - a.Until; more > 0 {
		a.Until, a.Slack = b.Until, a.Slack+more
	}
	return a
}

// An Entry has the pauses of one subject. A lift also ends all pauses that began before it and become known later.
// It is not safe for concurrent use.
type Entry struct {
	Spans  [Reasons]Span
	Lifted int64 // stamp of the latest lift; 0 if there was none
	here   int64 // stamp of the latest lift in this process alone
}

// Until returns when the last of its pauses ends; 0 if there is none.
func (e *Entry) Until() (end time.Duration) {
	for i := range e.Spans {
		end = max(end, e.Spans[i].Until)
	}
	return end
}

// Reason returns why there is a pause at the instant: Quota if a quota is used up, otherwise the reason of the pause
// that ends last.
func (e *Entry) Reason(now time.Duration) Reason {
	if e.Spans[Quota].Until > now {
		return Quota
	}
	return e.Last()
}

// Open reports whether the end is unknown, because an operator has to resume.
func (e *Entry) Open() bool {
	why := e.Last()
	return why >= Hand && e.Spans[why].Until > 0 && !e.Spans[why].Known
}

// Last returns the reason of the pause that ends last.
func (e *Entry) Last() (why Reason) {
	for i := range e.Spans {
		if e.Spans[i].Until > e.Spans[why].Until {
			why = Reason(i)
		}
	}
	return why
}

// Merge merges another entry of the same subject.
func (e *Entry) Merge(o *Entry) {
	for i := range e.Spans {
		e.Spans[i] = join(e.Spans[i], o.Spans[i])
	}
	e.Lifted = max(e.Lifted, o.Lifted)
}

// drop removes the pauses that began until the stamp, and reports whether there were any.
func (e *Entry) drop(stamp int64) (any bool) {
	for i := range e.Spans {
		if s := &e.Spans[i]; s.Until != 0 && s.At <= stamp {
			*s, any = Span{}, true
		}
	}
	return any
}

// expire removes the pauses that are over, and reports whether none remains.
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

// A Set has entries by subject, as a process or a store holds them. It is not safe for concurrent use.
type Set map[Subject]Entry

// Lifted returns the stamp of the latest lift that applies to a subject.
func (s Set) Lifted(of Subject) int64 {
	stamp := max(s[of].Lifted, s[All()].Lifted)
	if of.Kind == Key {
		stamp = max(stamp, s[OfLimits(of.Name)].Lifted)
	}
	return stamp
}

// Settle removes pauses that are lifted or over. It also removes lifts older than the stamp, because all that they
// have lifted is over by then.
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
