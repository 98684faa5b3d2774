package fleet

import (
	"cmp"
	"github.com/seed1158cd35/weir/limit"
	"slices"
)

// Members are the processes that share the limits of one group, as a store keeps them. They are not safe for
// concurrent use.
//
// Each process holds a part of all limits of the group. It may use its part after it has received no response
// for its Silence. The store counts the part as out from the Silence after the last response that is known to
// have arrived. So a part is out before its process begins to use it. The store does not grant parts that are
// out: its supply's clock is slower by that fraction. So each fraction of a limit has one holder, even if
// processes are cut off, slow or dead. The store only grants parts that no process holds, so the sum of all
// parts is at most 1.
//
//	the store responds     *          *  (this response is lost)
//	it arrives              *                  the process uses its part
//	                        |<---Silence--->|=====================
//	the part is out        |<---Silence--->|======================| then it is free
//	                       Ack                                    Until
//
// The store counts from when it sent the last response that is known to have arrived. The process counts from
// when that response arrived. So whenever the process uses its part, the store grants less to the others. At
// Until the part is free. A process that continues to use it announces that.
//
// Buckets drain by the supply's clock, which is the store's clock minus Lag. Falls record parts that were out:
// their holders may have spent the tokens saved in them. A part begins empty. So all parts together have saved
// only the tokens that accrued for them: Lag minus its value when the first of them went out.
//
// Instants are microseconds of the store's clock. All numbers are integers that are exact in a double, so that
// a script in a store computes the same.
type Members struct {
	Since int64 // since when the group is known; 0 if it always was
	Gen   int64 // generation of the memory; 0 if the group is new
	Birth int64 // when the previous memory was lost, while its parts may still be held; otherwise 0

	Unknown int64 // parts that unknown processes may hold
	Known   int64 // until when they may hold them

	At        int64 // Lag is computed up to this instant
	Lag, Frac int64 // microseconds and millionths of one by which the supply's clock is behind
	Begun     int64 // 1 more than Lag when no part was out; 0 if parts may have saved tokens for longer
	Falls     []Fall
	Stale     []Stale
	Window    int64 // the longest window that a process reported

	Heard int64 // when the last heartbeat arrived; 0 if none did
	Back  int64 // when the first heartbeat arrived after a time without any
	Out   int64 // parts that are out at At
	Next  int64 // until when Out stays the same
	Rows  map[string]*Member
}

// A Member is one process. Part is the largest part that it may believe to hold, and it holds it until Until.
// Fields with the names of Beat's fields have the values of the latest heartbeat.
type Member struct {
	Part, Until  int64
	Seq, No      int64 // of the latest heartbeat and of its response
	Last, Ack    int64 // when that response was sent, and the latest that is known to have arrived
	Silence      int64
	Joined, Wish int64 // the start of its membership, and its wish
	Alone, Goes  bool
	Late         bool
	Answer       Standing // to the latest heartbeat; a repeat gets the same
}

// A Fall records that parts of the size Part were out until At, by the supply's clock, and fewer afterwards. At Ends,
// as many tokens have accrued as these parts had saved; 0 means unknown.
type Fall struct{ Part, At, Ends int64 }

// Stale is a part that expired. A rolling limit may still count the units spent from it.
type Stale struct{ Part, At, Until int64 }

// UnknownFor is how long a store that is new, or has lost its data, reserves the parts that unknown processes
// may hold. Processes with a longer Options.Outage extend it.
const UnknownFor = DefaultOutage

// Durations are microseconds.
const (
	trial     = 1_000_000  // a process gets a part after this time, so that a crash loop gets none
	graces    = 3          // number of silences in which a live process has certainly sent a heartbeat
	aheadMost = 10_000_000 // the largest correction of a clock; if it was further ahead, its instants are not trusted

	// The largest numbers of records. If there are more, two are merged into a record that counts for as much
	// and as long as both.
	mostFalls = 4
	mostStale = 16
)

// NewMembers returns the members of a group that the store does not know. If isNew, no process holds a part.
// Otherwise some may.
func NewMembers(now int64, isNew bool) *Members {
	m := &Members{Gen: now, At: now, Next: never64, Rows: make(map[string]*Member)}
	if !isNew {
		m.Since = now
		m.forget(now)
	}
	return m
}

// Any reports whether dropping the members would lose information.
func (m *Members) Any() bool {
	return len(m.Rows) > 0 || m.Lag > 0 || m.Frac > 0 || m.Unknown > 0 || len(m.Falls) > 0 || len(m.Stale) > 0
}

// forget handles the loss of the memory: all parts are out until their holders claim them.
func (m *Members) forget(now int64) {
	m.Gen, m.Birth, m.Rows = max(now, m.Gen+1), now, make(map[string]*Member)
	m.Unknown, m.Known = Whole, now+UnknownFor.Microseconds()
	m.Begun = 0
	m.look(now)
}

// silent returns when the member becomes silent, if no further response is known to arrive.
func (r *Member) silent() int64 {
	if r.Alone {
		return 0
	}
	return r.Ack + r.Silence
}

// held returns the sum of all parts.
func (m *Members) held() (n int64) {
	for _, r := range m.Rows {
		n += r.Part
	}
	return n + m.Unknown
}

// look computes Out, and until when it stays the same.
func (m *Members) look(now int64) {
	m.Out, m.Next = m.Unknown, never64
	if m.Unknown > 0 {
		m.Next = m.Known
	}
	for _, r := range m.Rows {
		if at := r.silent(); now >= at {
			m.Out += r.Part
		} else if r.Part > 0 {
			m.Next = min(m.Next, at)
		}
		m.Next = min(m.Next, r.Until)
	}
}

// Turn brings the members to the instant: Lag grows by the parts that were out, and expired parts become free.
func (m *Members) Turn(now int64) {
	if now <= m.At {
		if d := m.At - now; d > aheadMost { // a wrong clock stamped all this
			m.Since, m.At, m.Heard, m.Back = min(m.Since, now), now, 0, 0
			for i := range m.Stale {
				m.Stale[i].At, m.Stale[i].Until = m.Stale[i].At-d, m.Stale[i].Until-d
			}
			m.forget(now)
		}
		return
	}
	if now < m.Next {
		// No process becomes silent and no part expires meanwhile, so Out stays the same.
		m.lags(m.Out*((now-m.At)/Whole), m.Out*((now-m.At)%Whole))
		m.At = now
		return
	}
	if m.Out == 0 {
		m.Begun = m.Lag + 1
	}
	// Each part is out since its process became silent.
	var whole, rest int64
	count := func(part, d int64) { whole, rest = whole+part*(d/Whole), rest+part*(d%Whole) }
	count(m.Unknown, now-m.At)
	for _, r := range m.Rows {
		count(r.Part, max(0, now-max(m.At, r.silent())))
	}
	m.lags(whole, rest)
	m.At = now
	m.change(now, func() { m.expire(now) })
}

// lags increases Lag by microseconds and millionths of one. No rounding errors accumulate.
func (m *Members) lags(whole, rest int64) {
	rest += m.Frac
	whole, m.Frac = whole+rest/Whole, rest%Whole
	m.Lag += whole
}

// change executes do, which may reduce Out.
func (m *Members) change(now int64, do func()) {
	m.look(now)
	before, saved := m.Out, m.saved()
	do()
	m.look(now)
	switch {
	case m.Unknown > 0:
		m.Begun = 0
	case before == 0:
		m.Begun = m.Lag + 1
	}
	if m.Out < before {
		m.fell(before, saved)
	}
}

// saved returns for how many microseconds tokens have accrued for the parts that are out. No part has saved
// more. 0 means unknown.
func (m *Members) saved() int64 {
	switch {
	case m.Begun == 0:
		return 0
	case m.Frac > 0:
		return m.Lag + 2 - m.Begun
	}
	return max(1, m.Lag+1-m.Begun)
}

// fell records how much was out and how long its tokens had accrued. It drops a Fall that was not larger and
// ends no later.
func (m *Members) fell(before, saved int64) {
	// By the supply's clock, since tokens accrue by it.
	f := Fall{Part: before, At: m.Z(m.At)}
	if saved > 0 {
		f.Ends = f.At + saved
	}
	kept := m.Falls[:0]
	for _, old := range m.Falls {
		if old.Part > before || old.ends() > f.ends() {
			kept = append(kept, old)
		}
	}
	m.Falls = append(kept, f)
	if n := len(m.Falls); n > mostFalls {
		a, b := m.Falls[n-2], &m.Falls[n-1]
		if a.Ends == 0 {
			b.Ends = 0
		} else if b.Ends != 0 {
			b.Ends = max(a.Ends, b.Ends)
		}
		b.Part = max(a.Part, b.Part)
		m.Falls = slices.Delete(m.Falls, n-2, n-1)
	}
}

// ends returns Ends, or never64 if it is unknown.
func (f Fall) ends() int64 {
	if f.Ends == 0 {
		return never64
	}
	return f.Ends
}

// expire frees expired parts. Members that use their parts for longer keep them until a lifetime after the
// store came back: a store that was unavailable for every member needs a heartbeat from each first.
func (m *Members) expire(now int64) {
	if m.Unknown > 0 && now >= m.Known {
		window := m.Window
		if m.Heard == 0 { // no process has reported its limits yet
			window = longestLife
		}
		m.stale(m.Unknown, m.Known, window)
		m.Unknown, m.Birth = 0, 0
	}
	// The result must not depend on the order of the members, which differs between stores.
	for _, r := range m.Rows {
		if now >= r.Until && r.Part > 0 && r.Goes {
			m.returned(now, r.Silence)
		}
	}
	var gone []*Member
	for id, r := range m.Rows {
		if now >= r.Until && r.Part > 0 && r.Goes && r.Last < m.Back {
			r.Until = max(r.Until, m.Back+r.life())
		}
		if now >= r.Until {
			gone = append(gone, r)
			delete(m.Rows, id)
		}
	}
	slices.SortFunc(gone, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Part, b.Part))
	})
	for _, r := range gone {
		m.stale(r.Part, r.Until, m.Window)
	}
	kept := m.Stale[:0]
	for _, s := range m.Stale {
		if now < s.Until {
			kept = append(kept, s)
		}
	}
	m.Stale = kept
}

// returned records that the store came back now, if no member sent a heartbeat for longer than live members
// need. Either the store was unavailable for every member or all ended. It does so once until the next
// heartbeat.
func (m *Members) returned(now, silence int64) {
	if now-m.Heard > graces*silence && m.Back <= m.Heard {
		m.Back = now
	}
}

// life returns how long the store keeps the member's part after a heartbeat.
func (r *Member) life() int64 { return r.Answer.Until - r.Last }

// stale records an expired part. If there are too many, the oldest are merged.
func (m *Members) stale(part, at, window int64) {
	if part == 0 || window == 0 {
		return
	}
	m.Stale = append(m.Stale, Stale{part, at, at + window})
	slices.SortFunc(m.Stale, func(a, b Stale) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Until, b.Until))
	})
	if len(m.Stale) > mostStale {
		a, b := m.Stale[0], &m.Stale[1]
		b.Part, b.Until = min(Whole, a.Part+b.Part), max(a.Until, b.Until)
		m.Stale = m.Stale[1:]
	}
}

// lengthen makes expired parts count for a window that has become longer, since their units stay in it for
// longer.
func (m *Members) lengthen(now, window int64) {
	for i := range m.Stale {
		if s := &m.Stale[i]; now < s.Until {
			s.Until = max(s.Until, s.At+window)
		}
	}
}

// Asked records the windows of a request. A process may use a longer window before its next heartbeat reports
// it.
func (m *Members) Asked(now int64, a *Ask) {
	for i := range a.Claims {
		if r := a.Claims[i].Rule; r.Shape == limit.Rolling && !r.Tally {
			m.lengthen(now, r.Ring.Window())
		}
	}
}
