package fleet

import (
	"fmt"
	"time"
)

// Whole is all of a group's limits; parts of it are counted in millionths.
const Whole = 1_000_000

// A Beat is what a process says to a store of a group, some times in each Silence, and
// the only exchange that changes parts. A process sends one beat at a time: until it is
// answered the same beat is sent again, and the store answers a repeat as it has.
//
// Instants and lengths are microseconds, instants those of the store's clock.
type Beat struct {
	Group  string
	Client string // of one run of a process: another run is another client

	Seq int64 // 1 for the first
	Ack int64 // the No of the latest answer that has arrived

	// What the process believes to hold: all as the latest answer said, 0 at first.
	Gen, Part, Until int64

	Silence int64 // it uses its part only after it has heard nothing for so long
	Life    int64 // for so long a part is kept for a process that is silent
	Window  int64 // of the longest rolling limit of the group, with the time for which grants hold

	Wish int64 // how much the process would use of late; compared with that of others only
	Need int64 // the part that the cheapest call of late needs; a smaller one is of no use

	None  bool  // it takes no part, as it may be frozen without knowing
	Goes  bool  // it goes on with its part for longer than Life if it must
	Late  bool  // it uses all of its part of a rolling limit only Overlap later than a window after it fell silent
	Alone bool  // it uses its part now although it hears the store, which is slow
	Leave bool  // it ends: its part is free
	Dead  bool  // with Leave: another process reports that Client has ended and may have spent of its part
	Idle  bool  // with Leave: another process reports that Client has ended and has not used its part since it was heard
	Bound int64 // for stores: the part does not grow beyond this; 0 means any, below 0 that it does not grow
}

// A Standing is how a process stands in its group, as the store answers a beat.
type Standing struct {
	No, Gen     int64
	Part, Until int64

	Out     int64     // parts of those who are silent: the store's supply is less by so much
	Unknown int64     // of these, what nobody has shown since the store lost its memory
	Known   int64     // until when that is held back
	Since   int64     // since when the store knows of the group; 0 if it always has, or was told that the group is new
	Alive   int64     // processes that were heard of late, this one included
	Now     time.Time // the store's clock

	Least int64 // the least silence that suits the store; 0 if any does
	Asks  bool  // the process must not go on by itself while the store answers, however late that is
}

// Check reports the first mistake in a beat. Every store refuses what it refuses.
func (b *Beat) Check() error {
	switch {
	case b.Client == "":
		return fmt.Errorf("%w: a beat without a client", ErrAsk)
	case b.Seq <= 0 || b.Ack < 0 || b.Gen < 0 || b.Part < 0 || b.Part > Whole || b.Wish < 0 || b.Need < 0 || b.Need > Whole || b.Window < 0:
		return fmt.Errorf("%w: beat %+v: numbers are 0 or more, parts at most %d", ErrAsk, *b, Whole)
	case b.Silence <= 0 || b.Silence > longestLife || b.Life <= 0 || b.Life > longestLife:
		return fmt.Errorf("%w: beat with a silence of %dus and a life of %dus: both are more than 0", ErrAsk, b.Silence, b.Life)
	}
	return nil
}

// longestLife is more than a year, which is the longest window.
const longestLife = 400 * 24 * 3600 * 1_000_000

// Beat answers a process, and grants it a part. An answer without a number says that the
// beat was overtaken by a later one, or that the process has left.
func (m *Members) Beat(now int64, b *Beat) (a Standing) {
	m.Turn(now)
	now = max(now, m.At)
	if !b.Leave { // one that ends, or was reported dead, does not prove that the others can reach the store
		m.returned(now, b.Silence)
		m.Heard = now
	}
	m.Window = max(m.Window, b.Window)
	m.lengthen(now, m.Window)
	r := m.Rows[b.Client]
	switch {
	case b.Leave:
		m.leave(now, r, b)
		return m.standing(now, a)
	// A copy of an older beat, which was answered: it says nothing new.
	case r != nil && b.Seq < r.Seq:
		return m.standing(now, a)
	// The same beat again: its answer was lost, or is on its way.
	case r != nil && b.Seq == r.Seq:
		return m.standing(now, r.Answer)
	case r != nil && b.Gen == m.Gen && r.No > 0 && b.Ack > r.No:
		m.forget(now) // it lost its latest writes
		r = nil
	}
	m.change(now, func() {
		if r == nil {
			r = m.join(now, b)
		}
		m.hear(now, r, b)
		m.grant(now, r, b)
	})
	return m.standing(now, r.Answer)
}

// leave frees the part of a member that has ended; r is nil if the store does not know it. A member that died while it
// may have used its part has not reported what it spent: for rolling limits that counts as spent.
func (m *Members) leave(now int64, r *Member, b *Beat) {
	if b.Idle && r != nil && !r.Alone { // nothing was spent of what was saved up in its part
		delete(m.Rows, b.Client)
		m.look(now)
		return
	}
	m.change(now, func() {
		if r != nil && b.Dead && now >= r.silent() {
			m.stale(r.Part, now, m.Window)
		}
		delete(m.Rows, b.Client)
	})
}

// standing is an answer with what the store says to all.
func (m *Members) standing(now int64, a Standing) Standing {
	a.Out, a.Unknown, a.Known, a.Since, a.Now = min(m.Out, Whole), m.Unknown, m.Known, m.Since, time.UnixMicro(now)
	for _, r := range m.Rows {
		if r.heard(now) {
			a.Alive++
		}
	}
	return a
}

// heard reports whether a member was heard of late: within graces of its own silences.
func (r *Member) heard(now int64) bool { return now-r.Last < graces*r.Silence }

// join makes a record. A part that its process shows is the process's own, as far as it
// is known that somebody holds it. A part whose time is over may be another's since: a
// process that was frozen shows it, too.
func (m *Members) join(now int64, b *Beat) *Member {
	r := &Member{Joined: now}
	if part := min(b.Part, m.Unknown); part > 0 && (b.Goes || now < b.Until) {
		m.Unknown -= part
		r.Part, r.Joined = part, now-trial
	}
	m.lives(b)
	m.Rows[b.Client] = r
	return r
}

// lives lets what is held back for unknown processes be held back for as long as
// processes keep their parts.
func (m *Members) lives(b *Beat) {
	if m.Birth == 0 {
		return
	}
	if len(m.Rows) == 0 && m.Known == m.Birth+UnknownFor.Microseconds() {
		m.Known = m.Birth
	}
	m.Known = max(m.Known, m.Birth+b.Life)
}

// hear notes what a process says. What was answered has arrived if it says so.
func (m *Members) hear(now int64, r *Member, b *Beat) {
	if r.No > 0 && b.Ack == r.No {
		r.Ack = r.Last
	}
	if r.Alone && b.Part < r.Part { // it may have spent what it held before
		m.stale(r.Part-b.Part, now, m.Window)
	}
	r.Seq, r.Silence = b.Seq, b.Silence
	r.Wish, r.Alone, r.Goes, r.Late = min(b.Wish, mostWish), b.Alone, b.Goes, b.Late
	r.Part = min(r.Part, b.Part) // it counts from now on that it became smaller
	// The process counts its silence from when the answer arrives, which is not before now.
	r.Last, r.Until = now, now+b.Life
}

// mostWish is the most that a Beat can wish for: the sum over all processes stays exact in a double.
const mostWish = 1_000_000_000

// grant gives a process a quarter of an equal part, and of the rest as much as it wishes
// compared with the others: not less than it needs, or nothing. So one that has not called yet can begin while the store
// is away, and one that calls most has most. A part grows only by what nobody holds; it shrinks in the books with the
// next beat, which says that the process has heard of it.
func (m *Members) grant(now int64, r *Member, b *Beat) {
	var n, wishes int64
	for _, o := range m.Rows {
		if o.heard(now) {
			n, wishes = n+1, wishes+o.Wish
		}
	}
	part := Whole / n
	if wishes > 0 {
		part = Whole/n/4 + Whole*3/4*r.Wish/wishes
	}
	if b.Alone && b.Window > 0 && part < r.Part && part > r.Part*3/4 { // what it gives up is of use to nobody for a window
		part = r.Part
	}
	// A part in which the dearest call does not fit is of no use: as much as it needs, or none.
	part = max(part, min(b.Need, Whole))
	if part > r.Part {
		part = min(part, r.Part+max(0, Whole-m.held()))
	}
	if b.Bound != 0 {
		part = min(part, max(r.Part, b.Bound))
	}
	if b.None || part < b.Need || r.Part == 0 && now-r.Joined < trial {
		part = 0
	}
	r.Part = max(r.Part, part)
	// The number grows also if the store has lost what it gave before: it is an instant.
	r.No = max(r.No+1, now)
	r.Answer = Standing{No: r.No, Gen: m.Gen, Part: part, Until: r.Until}
}
