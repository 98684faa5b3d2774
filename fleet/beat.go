package fleet

import (
	"fmt"
	"time"
)

// Whole is all of a group's limits. Parts are counted in millionths.
const Whole = 1_000_000

// A Beat is a heartbeat of a process for a group. A process sends some in each Silence. Only heartbeats change
// parts. A process has one heartbeat at a time: it sends copies until one gets a response, and the store
// answers a repeat as before.
//
// Instants and durations are microseconds. Instants are by the store's clock.
type Beat struct {
	Group  string
	Client string // one run of a process; another run is another client

	Seq int64 // 1 for the first
	Ack int64 // No of the latest response that arrived

	// The part that the process believes to hold, as in the latest response; at first all are 0.
	Gen, Part, Until int64

	Silence int64 // the process uses its part only after so long without a response
	Life    int64 // how long the store reserves the part of a silent process
	Window  int64 // of the longest rolling limit of the group, plus the time for which grants are valid

	Wish int64 // recent demand of the process, relative to other processes
	Need int64 // the part that its cheapest recent call needs; a smaller one is of no use

	None  bool  // it takes no part, because it may be frozen without noticing
	Goes  bool  // if necessary it uses its part for longer than Life
	Late  bool  // it uses all of its part of a rolling limit only Overlap later than one window after it became silent
	Alone bool  // it uses its part now although the store responds, because the store is slow
	Leave bool  // the process ends; its part is free
	Dead  bool  // with Leave: sent by another process; Client has ended and may have spent of its part
	Idle  bool  // with Leave: sent by another process; Client has ended and has not used its part since its last response
	Bound int64 // for stores: an upper bound for the part; 0 means none, a negative number that it does not grow
}

// A Standing is the store's response to a heartbeat: the state of the process in its group.
type Standing struct {
	No, Gen     int64
	Part, Until int64

	Out     int64     // parts of silent processes; the store's supply is smaller by that much
	Unknown int64     // the portion of Out that no process has claimed since the store lost its data
	Known   int64     // until when the store withholds Unknown
	Since   int64     // since when the store knows the group; 0 if it always has, or if the group was declared new
	Alive   int64     // processes with a recent heartbeat, including this one
	Now     time.Time // the store's clock

	Least int64 // the shortest Silence that suits the store; 0 if any does
	Asks  bool  // the process must not serve calls from its part while the store responds, even if it is slow
}

// Check returns the first mistake in a heartbeat. Every store refuses such a heartbeat.
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

// Beat handles a heartbeat and grants a part. The response has no number if the store has already handled a
// later heartbeat, or if the process has left.
func (m *Members) Beat(now int64, b *Beat) (a Standing) {
	m.Turn(now)
	now = max(now, m.At)
	if !b.Leave { // a process that ends, or was reported dead, does not prove that the others can reach the store
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
	// A copy of an older heartbeat, which was answered.
	case r != nil && b.Seq < r.Seq:
		return m.standing(now, a)
	// The same heartbeat again: the response was lost or is on its way.
	case r != nil && b.Seq == r.Seq:
		return m.standing(now, r.Answer)
	case r != nil && b.Gen == m.Gen && r.No > 0 && b.Ack > r.No:
		m.forget(now) // the store lost its latest writes
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

// leave frees the part of a member that has ended. r is nil if the store does not know it. A member that died
// while it may have used its part has not reported its usage. Rolling limits count all of that part as spent.
func (m *Members) leave(now int64, r *Member, b *Beat) {
	if b.Idle && r != nil && !r.Alone { // it spent none of the tokens that accrued in its part
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

// standing adds the fields of a response that are the same for all processes.
func (m *Members) standing(now int64, a Standing) Standing {
	a.Out, a.Unknown, a.Known, a.Since, a.Now = min(m.Out, Whole), m.Unknown, m.Known, m.Since, time.UnixMicro(now)
	for _, r := range m.Rows {
		if r.heard(now) {
			a.Alive++
		}
	}
	return a
}

// heard reports whether the member sent a heartbeat lately: within graces of its silences.
func (r *Member) heard(now int64) bool { return now-r.Last < graces*r.Silence }

// join adds a member. If the heartbeat claims a part, the member gets it, up to the parts that the store holds
// for unknown processes. An expired part is not accepted, since another process may hold it now: a process that
// was frozen also claims its old part.
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

// lives extends the time for which the store holds parts for unknown processes to the time for which processes
// keep theirs.
func (m *Members) lives(b *Beat) {
	if m.Birth == 0 {
		return
	}
	if len(m.Rows) == 0 && m.Known == m.Birth+UnknownFor.Microseconds() {
		m.Known = m.Birth
	}
	m.Known = max(m.Known, m.Birth+b.Life)
}

// hear records a heartbeat. Ack reports whether the previous response has arrived.
func (m *Members) hear(now int64, r *Member, b *Beat) {
	if r.No > 0 && b.Ack == r.No {
		r.Ack = r.Last
	}
	if r.Alone && b.Part < r.Part { // it may have spent of the part that it held before
		m.stale(r.Part-b.Part, now, m.Window)
	}
	r.Seq, r.Silence = b.Seq, b.Silence
	r.Wish, r.Alone, r.Goes, r.Late = min(b.Wish, mostWish), b.Alone, b.Goes, b.Late
	r.Part = min(r.Part, b.Part) // from now on the smaller part counts
	// The process measures its silence from the arrival of the response, which is not before now.
	r.Last, r.Until = now, now+b.Life
}

// mostWish is the largest Wish of a heartbeat. The sum over all processes stays exact in a double.
const mostWish = 1_000_000_000

// grant grants a part: a quarter of an equal share, and the rest in proportion to the wishes. It is at least
// what the process needs, or 0. So a process without calls yet can start during an outage, and the busiest
// process has the most. A part can only grow into parts that no process holds. It shrinks with the next
// heartbeat, which shows that the process knows.
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
	if b.Alone && b.Window > 0 && part < r.Part && part > r.Part*3/4 { // the difference would be of no use to other processes for a window
		part = r.Part
	}
	// A part that is too small for the cheapest call is of no use: grant what it needs, or none.
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
	// The number is an instant, so that it grows even if the store has lost the previous one.
	r.No = max(r.No+1, now)
	r.Answer = Standing{No: r.No, Gen: m.Gen, Part: part, Until: r.Until}
}
