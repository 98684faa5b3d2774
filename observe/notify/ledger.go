package notify

import "time"

// A subject is what is told of at most once an interval.
type subject struct {
	kind                       Kind
	upstream, operation, limit string
}

// lasts reports whether the kind is a state that has an end of its own. The others are
// over when they have not happened for an interval.
func (k Kind) lasts() bool { return k == BreakerOpen || k == Fallback }

// A ledger decides what is told when. It is a pure machine: time comes in as an argument.
type ledger struct {
	interval time.Duration
	most     int // how many subjects are remembered
	entries  map[subject]*entry
	lost     int64 // happenings for whose subjects there was no room
}

// An entry is what is known of a subject.
type entry struct {
	bad        bool // it is the case now
	told       bool // the last message said that it is the case
	since      time.Time
	last       time.Time // when it last happened
	alerted    time.Time // when it was last told that it is the case
	suppressed int64
	detail     string
}

// A notice is what is to be told of a subject.
type notice struct {
	subject
	resolved   bool
	since      time.Time
	detail     string
	suppressed int64

	region, account, err string // of the call that it is told of
}

// happened notes that something bad did, and says whether it is to be told now.
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
	if s.kind.lasts() { // it may be told later
		e.detail = detail()
	}
	if !e.alerted.IsZero() && now.Sub(e.alerted) < l.interval {
		e.suppressed++
		return notice{}, false
	}
	if e.told && s.kind.lasts() {
		e.suppressed++ // it lasts, and was told
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

// drop makes room: a subject goes that is over, was told to be, and may be told again.
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

// over notes that a lasting state has ended, and says whether that is to be told: only if
// its beginning was.
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

// due is what is to be told because time has passed: states whose beginning was held back,
// and the end of what has not happened for an interval. next is when to ask again; the
// zero Time if nothing is expected.
func (l *ledger) due(now time.Time) (notices []notice, next time.Time) {
	for s, e := range l.entries {
		at, ok := l.when(s, e)
		for ok && !at.After(now) { // what is over may be old enough to be forgotten too
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

// act does what is due for an entry.
func (l *ledger) act(now time.Time, s subject, e *entry, notices []notice) []notice {
	switch {
	case !e.bad:
		delete(l.entries, s)
		return notices
	case s.kind.lasts():
		e.suppressed-- // this one is told now
		return append(notices, l.alert(now, s, e))
	}
	return append(notices, l.resolve(e, s, ""))
}

// when is when something is due for an entry.
func (l *ledger) when(s subject, e *entry) (time.Time, bool) {
	switch {
	case !e.bad: // nothing is left to say of it
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
