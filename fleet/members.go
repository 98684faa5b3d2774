package fleet

import (
	"cmp"
	"github.com/seed1158cd35/weir/limit"
	"slices"
)

// Members are the processes that share the limits of one group, as a store keeps them.
//
// Each holds a part of all limits of the group. It may use the part when it has heard
// nothing for its Silence. The store counts it out from the Silence after the last answer
// that is known to have arrived, which is never later, and grants to the others only what
// is not out: the supply runs slower by what is out. So a limit is handed around and never
// doubled, whoever is cut off, slow or dead. What is granted is a part of what nobody
// holds, so all parts are 1 at most.
//
//	the store answers      *          *  (this answer is lost)
//	the process hears       *                  it uses its part
//	                        |<---Silence--->|=====================
//	it is out              |<---Silence--->|======================| then it is free
//	                       Ack                                    Until
//
// The store counts from when it gave the answer that is known to have arrived, the process from when that
// arrived: so whenever the process uses the part, the others get less by it. At Until the part is free; a
// process that goes on for longer does so announced.
//
// Buckets are drained by the supply's clock, which is the store's less Lag. Fall
// remembers what was out: the tokens that were saved up out there may have been spent. A part begins empty, so all parts
// together have saved up no more than came for them: Lag less what it was when the first of them was out.
//
// Instants are microseconds of the store's clock. All numbers are whole and small
// enough for a double, so that a script in a store computes the same.
type Members struct {
	Since int64 // since when the group is known; 0 if it always was
	Gen   int64 // of the memory; 0 if it is as new
	Birth int64 // when the one before was lost, while parts of that may be held; otherwise 0

	Unknown int64 // parts that may be held by processes which the store has forgotten
	Known   int64 // until when they may be

	At        int64 // up to when Lag is counted
	Lag, Frac int64 // microseconds, and millionths of one, by which the supply is behind
	Begun     int64 // 1 more than Lag was when nothing was out last; 0 if parts may have been saving up for longer
	Falls     []Fall
	Stale     []Stale
	Window    int64 // the longest that anyone has told

	Heard int64 // when the last beat came; 0 if none did
	Back  int64 // when the first came after a while in which none did
	Out   int64 // parts out as of At
	Next  int64 // until when it stays so
	Rows  map[string]*Member
}

// A Member is one process. The largest part that it may believe to hold is Part, which it has until Until.
// What it said with its latest beat is in fields named as those of Beat.
type Member struct {
	Part, Until  int64
	Seq, No      int64 // of the latest beat, and of the answer to it
	Last, Ack    int64 // when that answer was given, and the latest that is known to have arrived
	Silence      int64
	Joined, Wish int64 // since when it is a member, and its wish
	Alone, Goes  bool
	Late         bool
	Answer       Standing // to the latest beat: a repeat gets the same
}

// A Fall is that so much was out before it became less, and when by the supply's clock. By Ends as many tokens have come
// as had been saved up; 0 means that it is not known.
type Fall struct{ Part, At, Ends int64 }

// Stale are parts that expired: what was spent of them may count in a rolling limit still.
type Stale struct{ Part, At, Until int64 }

// UnknownFor is how long a store that is new, or has lost its memory, reserves the parts that unknown processes may
// hold. Processes with a longer Options.Outage extend it.
const UnknownFor = DefaultOutage

// Lengths are microseconds.
const (
	trial     = 1_000_000  // after which a process is given a part, so that a crash loop gets none
	graces    = 3          // silences in which a process that is alive has surely beaten
	aheadMost = 10_000_000 // by which a clock may run back; if it was further ahead, nothing that it has stamped is believed

	// So many are kept; of more the oldest become one that counts for as much as both, and as long.
	mostFalls = 4
	mostStale = 16
)

// NewMembers are those of a group of which the store knows nothing at the instant. If
// the group is new nobody holds a part; otherwise, somebody may.
func NewMembers(now int64, isNew bool) *Members {
	m := &Members{Gen: now, At: now, Next: never64, Rows: make(map[string]*Member)}
	if !isNew {
		m.Since = now
		m.forget(now)
	}
	return m
}

// Any reports whether something would be lost by forgetting the members.
func (m *Members) Any() bool {
	return len(m.Rows) > 0 || m.Lag > 0 || m.Frac > 0 || m.Unknown > 0 || len(m.Falls) > 0 || len(m.Stale) > 0
}

// forget is the memory lost: all parts are out until those who hold them show them.
func (m *Members) forget(now int64) {
	m.Gen, m.Birth, m.Rows = max(now, m.Gen+1), now, make(map[string]*Member)
	m.Unknown, m.Known = Whole, now+UnknownFor.Microseconds()
	m.Begun = 0
	m.look(now)
}

// silent is when a member falls silent, if no more answers are known to arrive.
func (r *Member) silent() int64 {
	if r.Alone {
		return 0
	}
	return r.Ack + r.Silence
}

// held is all parts together.
func (m *Members) held() (n int64) {
	for _, r := range m.Rows {
		n += r.Part
	}
	return n + m.Unknown
}

// look counts what is out, and until when that stays so.
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

// Turn brings the members to the instant: the lag grows by what was out, and parts
// whose time is over are free.
func (m *Members) Turn(now int64) {
	if now <= m.At {
		if d := m.At - now; d > aheadMost { // a clock that was wrong has stamped all this
			m.Since, m.At, m.Heard, m.Back = min(m.Since, now), now, 0, 0
			for i := range m.Stale {
				m.Stale[i].At, m.Stale[i].Until = m.Stale[i].At-d, m.Stale[i].Until-d
			}
			m.forget(now)
		}
		return
	}
	if now < m.Next {
		// Nobody falls silent meanwhile, and nothing is over: what is out stays so.
		m.lags(m.Out*((now-m.At)/Whole), m.Out*((now-m.At)%Whole))
		m.At = now
		return
	}
	if m.Out == 0 {
		m.Begun = m.Lag + 1
	}
	// Each is out from when it fell silent.
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

// lags lets the lag grow by so many microseconds, and millionths of one: nothing is lost by rounding, however often
// it is asked.
func (m *Members) lags(whole, rest int64) {
	rest += m.Frac
	whole, m.Frac = whole+rest/Whole, rest%Whole
	m.Lag += whole
}

// change does something that may let less be out than before.
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

// saved is for how many microseconds tokens have come for the parts that are out: no part has saved up more. 0 means that
// it is not known.
func (m *Members) saved() int64 {
	switch {
	case m.Begun == 0:
		return 0
	case m.Frac > 0:
		return m.Lag + 2 - m.Begun
	}
	return max(1, m.Lag+1-m.Begun)
}

// fell notes that so much was out, and for how long it had saved up tokens. A Fall that was smaller, or as large and
// earlier, and ends no later needs no memory of its own.
func (m *Members) fell(before, saved int64) {
	// By the supply's clock, as tokens come by it.
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

// ends is Ends, or never.
func (f Fall) ends() int64 {
	if f.Ends == 0 {
		return never64
	}
	return f.Ends
}

// expire frees the parts whose time is over. Members that use their parts beyond it keep them until life after the
// store came back: a store that was away for all of them has to hear them first.
func (m *Members) expire(now int64) {
	if m.Unknown > 0 && now >= m.Known {
		window := m.Window
		if m.Heard == 0 { // nobody has said which limits there are
			window = longestLife
		}
		m.stale(m.Unknown, m.Known, window)
		m.Unknown, m.Birth = 0, 0
	}
	for id, r := range m.Rows {
		if now < r.Until {
			continue
		}
		if r.Part > 0 && r.Goes {
			m.returned(now, r.Silence)
			if r.Last < m.Back {
				r.Until = max(r.Until, m.Back+r.life())
			}
		}
		if now >= r.Until {
			m.stale(r.Part, r.Until, m.Window)
			delete(m.Rows, id)
		}
	}
	kept := m.Stale[:0]
	for _, s := range m.Stale {
		if now < s.Until {
			kept = append(kept, s)
		}
	}
	m.Stale = kept
}

// returned notes that the store came back now if no member was heard for as long as one that lives is never silent:
// it was away for all of them, or they all ended. It notes that once until a member is heard.
func (m *Members) returned(now, silence int64) {
	if now-m.Heard > graces*silence && m.Back <= m.Heard {
		m.Back = now
	}
}

// life is for how long the store keeps the member's part after a beat.
func (r *Member) life() int64 { return r.Answer.Until - r.Last }

// stale notes a part that expired. Of many the oldest become one.
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

// lengthen lets what still counts of expired parts count for a window that has become
// longer: what was spent of them is in it for longer, too.
func (m *Members) lengthen(now, window int64) {
	for i := range m.Stale {
		if s := &m.Stale[i]; now < s.Until {
			s.Until = max(s.Until, s.At+window)
		}
	}
}

// Asked notes the windows of an ask. A process asks by a longer one before its next beat
// says so.
func (m *Members) Asked(now int64, a *Ask) {
	for i := range a.Claims {
		if r := a.Claims[i].Rule; r.Shape == limit.Rolling && !r.Tally {
			m.lengthen(now, r.Ring.Window())
		}
	}
}
