package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A standing is the state of this process in a group: the part of the limits that it holds, and from when it
// may use the part. It only decides; beating.go and debts.go send requests.
//
// The process uses its part after it has received no response for the silence, counted from the arrival of the
// latest one. The store counts the part as out from the silence after it sent that response, or an earlier
// response, if a later one may be lost. So the store never counts it as out later than the process uses it. The
// process stops using the part when a response arrives. The store counts the part as in when the next heartbeat
// confirms that.
type standing struct {
	rules  parting
	asleep func() time.Duration // how long the machine was suspended, which now does not include; nil means never

	// The heartbeat under way.
	seq     int64         // of the latest heartbeat; 0 before the first
	pending *Beat         // sent again until it gets a response; nil if there is none
	first   time.Duration // when it was first sent
	nap     time.Duration // asleep at that time

	// The latest response, in the fields of Standing. Before the first, met is false and all other fields are
	// 0.
	met         bool
	ack, gen    int64
	part, until int64         // the part in millionths, and until when the store reserves it, in microseconds of the store's clock
	recv, sent  time.Duration // when the response arrived, and when its heartbeat was first sent
	slept       time.Duration // asleep at that time
	said        time.Duration // the silence in that heartbeat
	life        time.Duration // how long the store reserves the part after that heartbeat
	silence     time.Duration // the silence for the next heartbeat
	began       time.Duration // when the process joined the group

	rtt   time.Duration // of exchanges with the store, smoothed; 0 before the first
	lost  bool          // an exchange has failed since the latest response
	crowd int64         // number of processes that send heartbeats; see crowded
	slow  bool          // responses of the store are too late to use their grants
	asks  bool          // the store does not allow this process to use its part while it responds
	solo  time.Duration // since when the process uses its part although the store responds; 0 if it does not

	epoch int       // incremented by each response that ends the use of the part
	kept  partsHeld // which parts were held, for limits that count in a window
	left  bool      // the process has returned its part and asks the store for every unit

	// The use of a part has its own supply clock, in microseconds and millionths of one. The clock is 0 when
	// the use begins, and runs at the speed of the part.
	key     int // identifies the use; 0 means none
	z, rest int64
	at      time.Duration
	speed   int64
}

// An ownUse is how a process uses a part or a share at an instant.
type ownUse struct {
	mode  mode
	part  int64
	key   int           // of one use; saved tokens of another use are worthless
	began time.Duration // when the use began
	z     int64         // its supply clock
}

// parting is the configuration of parts: Options.Silence, Outage and Without, with defaults.
type parting struct {
	silence time.Duration
	life    time.Duration // how long the store reserves the part of a silent process, at least
	without Without
	none    bool          // the process takes no part, because it may be frozen without noticing
	overlap time.Duration // how much later all of a part of a rolling limit is used: 0 or Overlap
}

// Without is what a process does when it has no part to use: it has never reached the store, or not for longer
// than Options.Outage. The zero Without continues with the last part, and refuses calls if there is none.
type Without struct {
	Refuse bool    // refuse calls
	Share  float64 // or use this share of each limit, independent of other processes; 0 means none
}

// A mode is how a process serves calls that need more units than its blocks contain.
type mode uint8

const (
	asking   mode = iota // the store is asked; there are no other units
	waiting              // like asking, but the store never responded, or granted no part before its outage: calls wait
	parted               // from the part that the store reserves
	past                 // from the same part, for longer than the store reserves it
	sharing              // from a configured share
	refusing             // calls are refused
)

// modes are the names of modes.
var modes = [...]string{"heard", "new", "cut off", "past", "share", "refuse"}

// String returns the mode's name for logs and tests.
func (m mode) String() string { return modes[m] }

// uses reports whether a mode serves calls without the store.
func (m mode) uses() bool { return m == parted || m == past || m == sharing }

// slack is the error of a clock over d: a thousandth, plus the time to read it.
func slack(d time.Duration) time.Duration { return d/1000 + time.Millisecond }

// quiet returns how long the process must receive no response. A longer silence applies immediately, and a
// shorter one once the store has responded to it.
func (s *standing) quiet() time.Duration {
	q := max(s.silence, s.said)
	return q + slack(q)
}

// from returns when this process may serve calls from its part, if no response arrives before.
func (s *standing) from() time.Duration {
	switch {
	case s.left:
		return bucket.Never
	// A share needs no part. It can be used even if the store was never reached.
	case !s.met && s.rules.without.Share > 0:
		return s.began + s.rules.silence
	case !s.met:
		return bucket.Never
	case s.solo != 0:
		return s.solo
	}
	return s.recv + s.quiet()
}

// over returns when the part granted by the latest response expires.
func (s *standing) over() time.Duration { return s.sent + s.life - slack(s.life) }

// lapsed reports whether the part has expired. The store's clock continues while this machine is suspended.
func (s *standing) lapsed(now time.Duration) bool {
	if s.asleep != nil {
		now += max(0, s.asleep()-s.slept)
	}
	return now >= s.over()
}

// nextLife returns how long the store should reserve the part after the next heartbeat. If silences are longer,
// because there are many processes or the store is slow, one lost heartbeat must not cost a process its part.
func (s *standing) nextLife() time.Duration { return max(s.rules.life, 4*s.silence) }

// mode returns how calls are served now, and from which part, in millionths:
//
//	             recent response     the silence is over           the part has expired, or there was none
//	met          asking              parted                        past, sharing, refusing, or waiting
//	never met    -                   waiting, or sharing           -
//
// Without configures the last column. A process that has left always asks.
func (s *standing) mode(now time.Duration) (mode, int64) {
	w := s.rules.without
	switch {
	case s.left:
		return asking, 0
	case !s.met && now <= s.from():
		return waiting, 0
	case now <= s.from():
		return asking, 0
	// The store reserves the part, and grants that much less to other processes.
	case s.part > 0 && !s.lapsed(now):
		return parted, s.part
	case w.Share > 0:
		return sharing, int64(w.Share * Whole)
	// From here on the store may have given the part to other processes.
	case w.Refuse && s.lapsed(now):
		return refusing, 0
	case s.part > 0:
		return past, s.part
	}
	return waiting, 0
}

// since returns when the present mode began to serve calls. Its units begin empty then.
func (s *standing) since(m mode) time.Duration {
	if m == parted || m == past || !s.met || s.part == 0 {
		return s.from()
	}
	return max(s.from(), s.over())
}

// returns ends the use of the part while the store responds, if the store is fast again. The process first
// stops, then reports its debts, and then confirms in a heartbeat.
func (s *standing) returns() bool {
	if s.solo == 0 || s.slow || s.pending != nil {
		return false
	}
	s.solo = 0
	s.epoch++
	return true
}

// beat returns the next heartbeat, or the pending one.
func (s *standing) beat(now time.Duration, wish, need int64, window time.Duration) *Beat {
	if s.pending != nil {
		return s.pending
	}
	s.seq++
	if s.first = now; s.asleep != nil {
		s.nap = s.asleep()
	}
	s.pending = &Beat{
		Seq: s.seq, Ack: s.ack, Gen: s.gen, Part: s.part, Until: s.until,
		Silence: s.silence.Microseconds(), Life: s.nextLife().Microseconds(), Window: window.Microseconds() + 1,
		Wish: wish, Need: need, None: s.rules.none, Alone: s.slow && !s.asks && !s.rules.none,
		Goes: !s.rules.without.Refuse && s.rules.without.Share == 0, Late: s.rules.overlap >= Overlap,
	}
	return s.pending
}

// hears handles a response to a copy of a heartbeat that was sent at copied. It reports false if the heartbeat
// already has a response.
func (s *standing) hears(now, copied time.Duration, b *Beat, a *Standing) bool {
	if s.pending != b || a.No == 0 {
		return false
	}
	s.pending = nil
	s.use(now) // accrue tokens of the part until now
	// An expired part was not held until now, even if it was used.
	lapsed := s.met && s.lapsed(now)
	if lapsed {
		s.kept.note(now, 0) // its part has expired meanwhile
	}
	s.took(now - copied)
	s.met, s.recv, s.sent, s.slept = true, now, s.first, s.nap
	s.said, s.life = time.Duration(b.Silence)*time.Microsecond, time.Duration(b.Life)*time.Microsecond
	had := s.part
	s.ack, s.gen, s.part, s.until = a.No, a.Gen, a.Part, a.Until
	s.kept.note(now, a.Part)
	switch {
	// The process follows the store.
	case !b.Alone || !s.slow:
		s.solo = 0
		s.epoch++
	// After this response, the store knows that the process uses its part: a new use begins.
	case s.solo == 0 || had == 0 || lapsed:
		s.solo = now
		s.epoch++
	}
	s.use(now)
	return true
}

// took adds a response time to the smoothed one, with a weight of an eighth as in TCP (RFC 6298).
func (s *standing) took(d time.Duration) {
	if s.rtt == 0 || s.lost { // the increase for missing responses does not apply to a store that is back
		s.rtt, s.lost = d, false
	}
	s.rtt += (d - s.rtt) / 8
}

// silentYet reports whether the store has neither responded nor failed.
func (s *standing) silentYet() bool { return !s.met && s.rtt == 0 }

// missed records a missing response: the next one may take half as long again.
func (s *standing) missed() { s.rtt, s.lost = min(mostRTT, s.rtt*3/2+10*time.Millisecond), true }

// crowded returns the number of processes that send heartbeats, which determines the silence. After an outage,
// a store has few heartbeats at first. If fewer processes are alive than before, the number decreases by an
// eighth of the difference per response. So not all processes return with the short silence of a small fleet.
func (s *standing) crowded(alive int64) int64 {
	s.crowd = max(alive, s.crowd-(s.crowd-alive+7)/8)
	return s.crowd
}

// mostRTT bounds the smoothed response time, so that a store that is back is noticed soon.
const mostRTT = 4 * time.Second

// judge decides whether the store is fast enough again, and sets the next silence. The store is slow when its
// responses are repeatedly too late for hold; see guard. It is fast enough when they take less than two fifths
// of hold. A hold of 0 means that no response is too late.
//
// The silence grows with the number of processes. Each sends three heartbeats per silence, so with the usual
// silence a store gets at most 150 a second.
func (s *standing) judge(hold time.Duration, took, least time.Duration, alive int64) {
	alive = s.crowded(alive)
	if hold == 0 || s.rtt < hold*2/5 {
		s.slow = false
	}
	base := max(s.rules.silence, least, time.Duration(alive)*s.rules.silence/50)
	s.silence = min(max(base, 4*took+base*3/4), longestSilence)
}

// longestSilence bounds how long a process waits for the store before it uses its part.
const longestSilence = time.Minute

// use returns how the process serves calls that need more units than its blocks contain.
func (s *standing) use(now time.Duration) ownUse {
	m, part := s.mode(now)
	if !m.uses() {
		s.key = 0
		return ownUse{mode: m}
	}
	began, key := s.since(m), 2*s.epoch+1
	if m == sharing {
		key++
	}
	if key != s.key {
		s.key, s.z, s.rest, s.at, s.speed = key, 0, 0, began, part
	}
	// The use's supply clock has run at the speed of the part since its last reading. It is computed with
	// integers.
	if d := int64((now - s.at) / time.Microsecond); d > 0 {
		s.rest += d % Whole * s.speed
		s.z += d/Whole*s.speed + s.rest/Whole
		s.rest %= Whole
		s.at += time.Duration(d) * time.Microsecond
	}
	s.speed = part
	return ownUse{m, part, key, began, s.z}
}

// patient returns until when the store is expected to respond.
func (s *standing) patient() time.Duration {
	if !s.met {
		return s.began + s.rules.silence
	}
	return s.recv + s.quiet()
}
