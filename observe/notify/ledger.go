package notify

import "time"

// A subject groups messages. There is at most one alert per subject and interval.
type subject struct {
	kind                       Kind
	upstream, operation, limit string
}

// lasts reports whether the kind is a state with an explicit end. The other kinds end when they have not happened for an
// interval.
func (k Kind) lasts() bool { return k == BreakerOpen || k == Fallback }

// A ledger decides which messages are sent, and when. It is a pure state machine: time is an argument.
type ledger struct {
	interval time.Duration
	most     int // maximum number of subjects
	entries  map[subject]*entry
	lost     int64 // events whose subjects did not fit
}

// An entry is the state of a subject.
type entry struct {
	bad        bool // the condition holds now
	told       bool // the last message reported the condition
	since      time.Time
	last       time.Time // when it last happened
	alerted    time.Time // when the condition was last reported
	suppressed int64
	detail     string
}

// A notice is a message to send about a subject.
type notice struct {
	subject
	resolved   bool
	since      time.Time
	detail     string
	suppressed int64

	region, account, err string // of the call in the message
}

// happened records an event and reports whether to send a notice now.
func (l *ledger) happened(now time.Time, s subject, detail func() string) (notice, bool) {
	e := l.entries[s]
	if e == nil {
		if len(l.entries) >= l.most && !l.drop(now) {
			l.lost++
			return notice{}, false
		}
		e = new(entry)
		l.entries[s] = e
	}
	if !e.bad {
		e.bad, e.since = true, now
	}
	e.last = now
	if s.kind.lasts() { // it may be reported later
		e.detail = detail()
	}
	if !e.alerted.IsZero() && now.Sub(e.alerted) < l.interval {
		e.suppressed++
		return notice{}, false
	}
	if e.told && s.kind.lasts() {
		e.suppressed++ // the state lasts and was already reported
		return notice{}, false
	}
	e.detail = detail()
	return l.alert(now, s, e), true
}

func (l *ledger) alert(now time.Time, s subject, e *entry) notice {
	n := notice{subject: s, since: e.since, detail: e.detail, suppressed: e.suppressed}
	e.told, e.alerted, e.suppressed = true, now, 0
	return n
}

// drop removes a subject that has ended, whose end was reported, and that may alert again.
func (l *ledger) drop(now time.Time) bool {
	for s, e := range l.entries {
		if !e.bad && !e.told && now.Sub(e.alerted) >= l.interval {
			l.lost += e.suppressed
			delete(l.entries, s)
			return true
		}
	}
	return false
}

// over records the end of a lasting state. It reports whether to send a notice: only if the beginning was reported.
func (l *ledger) over(now time.Time, s subject, detail string) (notice, bool) {
	e := l.entries[s]
	if e == nil || !e.bad {
		return notice{}, false
	}
	e.bad = false
	if !e.told {
		return notice{}, false
	}
	return l.resolve(e, s, detail), true
}

func (l *ledger) resolve(e *entry, s subject, detail string) notice {
	n := notice{subject: s, resolved: true, since: e.since, detail: detail, suppressed: e.suppressed}
	e.bad, e.told, e.suppressed = false, false, 0
	return n
}

// due returns the notices that have become due: lasting states whose alert was delayed, and the end of events that have not
// happened for an interval. next is when to call due again, the zero Time if no change is expected.
func (l *ledger) due(now time.Time) (notices []notice, next time.Time) {
	for s, e := range l.entries {
		at, ok := l.when(s, e)
		for ok && !at.After(now) { // an entry that has ended may also be old enough to forget
			notices = l.act(now, s, e, notices)
			at, ok = l.when(s, e)
			ok = ok && l.entries[s] != nil
		}
		if ok {
			next = earlier(next, at)
		}
	}
	return notices, next
}

func (l *ledger) act(now time.Time, s subject, e *entry, notices []notice) []notice {
	switch {
	case !e.bad:
		delete(l.entries, s)
		return notices
	case s.kind.lasts():
		e.suppressed-- // this one is reported now
		return append(notices, l.alert(now, s, e))
	}
	return append(notices, l.resolve(e, s, ""))
}

// when returns when the next action of an entry is due, if there is one.
func (l *ledger) when(s subject, e *entry) (time.Time, bool) {
	switch {
	case !e.bad: // nothing remains to be reported
		return e.alerted.Add(2 * l.interval), e.suppressed == 0
	case s.kind.lasts():
		return e.alerted.Add(l.interval), !e.told
	}
	return e.last.Add(l.interval), true
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
