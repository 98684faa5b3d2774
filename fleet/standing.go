package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A standing is what a process knows of its place in a group: which part of the limits it
// holds, and from when on it may use it. It decides only; beating.go and debts.go talk.
//
// The process begins to use its part when it has heard nothing for the silence, counted
// from when the latest answer arrived. The store counts it out from the silence after that
// answer left, or an earlier one that is known to have arrived, which is never later. It
// stops when an answer arrives; the store counts it in when the next beat says that it did.
type standing struct {
	rules  parting
	asleep func() time.Duration // for how long the machine was suspended, which now does not count; nil means never

	// The beat under way.
	seq     int64         // of the latest beat; 0 before the first
	pending *Beat         // not answered yet; it is sent again until it is; nil if there is none
	first   time.Duration // when it was sent first
	nap     time.Duration // asleep at that time

	// The latest answer, by the fields of Standing. Without one, met is false and all else 0.
	met         bool
	ack, gen    int64
	part, until int64         // the part in millionths, and until when the store keeps it, in its own microseconds
	recv, sent  time.Duration // when the answer arrived, and when its beat was sent first
	slept       time.Duration // asleep at that time
	said        time.Duration // the silence that the beat said
	life        time.Duration // for how long the store keeps the part after that beat
	silence     time.Duration // the one to say next
	began       time.Duration // when the process came to the group

	rtt   time.Duration // of exchanges with the store, smoothed; 0 before the first
	lost  bool          // an exchange has failed since the latest answer
	crowd int64         // processes that beat, as crowded counts them
	slow  bool          // the store answers too late for what it grants to be used
	asks  bool          // the store does not let this process go on by itself for that
	solo  time.Duration // since when the store knows that; 0 if it does not

	epoch int       // goes up with each answer that ends the use of the part
	kept  partsHeld // which parts were held, for limits that count in a window
	left  bool      // the process has given its part back, and asks the store for whatever it lets go

	// Of the use of a part: its own supply clock, in microseconds and millionths of one. It
	// stands at 0 when the use begins and runs at the speed of the part.
	key     int // which use that is; 0 is none
	z, rest int64
	at      time.Duration
	speed   int64
}

// An ownUse is how a process uses a part, or a share, at an instant.
type ownUse struct {
	mode  mode
	part  int64
	key   int           // of one use; whatever was saved up in another is worth nothing
	began time.Duration // the use
	z     int64         // its supply clock
}

// parting is what is configured of parts: the Silence, Outage and Without of Options, with their defaults.
type parting struct {
	silence time.Duration
	life    time.Duration // for how long the store keeps the part of a process that is silent, at least
	without Without
	none    bool          // the process takes no part, as it may be frozen without knowing
	overlap time.Duration // by how much later all of a part of a rolling limit is used: 0, or Overlap
}

// Without is what a process does when it has no part to go on with: it has never reached
// the store, or has not for longer than Options.Outage. The zero Without goes on with the last
// part, and refuses calls as long as there is none.
type Without struct {
	Refuse bool    // calls are refused
	Share  float64 // or this share of each limit is used, whatever others do; 0 if not
}

// A mode is how calls are served of which the store has granted nothing yet.
type mode uint8

const (
	asking   mode = iota // the store is asked, and there is nothing else
	waiting              // as asking, but the store has never answered, or granted no part before it went away: calls wait
	parted               // from the part that the store has granted
	past                 // from the same, for longer than the store keeps it
	sharing              // from a share that somebody has configured
	refusing             // they are refused
)

// modes are the names of modes.
var modes = [...]string{"heard", "new", "cut off", "past", "share", "refuse"}

// String is the mode in logs and tests.
func (m mode) String() string { return modes[m] }

// uses reports whether a mode serves calls without the store.
func (m mode) uses() bool { return m == parted || m == past || m == sharing }

// slack is by how much a clock may run wrong: a thousandth, and the time that it takes to
// look.
func slack(d time.Duration) time.Duration { return d/1000 + time.Millisecond }

// quiet is how long nothing must be heard. A longer silence holds at once, a shorter one
// when the store has answered to it.
func (s *standing) quiet() time.Duration {
	q := max(s.silence, s.said)
	return q + slack(q)
}

// from is when this process may serve calls by itself, if no answer arrives before.
func (s *standing) from() time.Duration {
	switch {
	case s.left:
		return bucket.Never
	// A share needs no part: it can be used before the store was ever reached.
	case !s.met && s.rules.without.Share > 0:
		return s.began + s.rules.silence
	case !s.met:
		return bucket.Never
	case s.solo != 0:
		return s.solo
	}
	return s.recv + s.quiet()
}

// over is when the part is over that the latest answer granted.
func (s *standing) over() time.Duration { return s.sent + s.life - slack(s.life) }

// lapsed reports whether the part is over. The store's clock goes on while this machine is suspended.
func (s *standing) lapsed(now time.Duration) bool {
	if s.asleep != nil {
		now += max(0, s.asleep()-s.slept)
	}
	return now >= s.over()
}

// nextLife is for how long the store is to keep the part after the next beat: where processes are silent for longer,
// because they are many or the store is slow, a beat that gets lost must not cost them their parts.
func (s *standing) nextLife() time.Duration { return max(s.rules.life, 4*s.silence) }

// mode is how calls are served now, and of which part, in millionths:
//
//	             an answer of late   the silence is over           the part is over, or there was none
//	met          asking              parted                        past, sharing, refusing, or waiting
//	never met    -                   waiting, or sharing           -
//
// What follows the part is configured: see Without. One that has left asks, whatever it hears.
func (s *standing) mode(now time.Duration) (mode, int64) {
	w := s.rules.without
	switch {
	case s.left:
		return asking, 0
	case !s.met && now <= s.from():
		return waiting, 0
	case now <= s.from():
		return asking, 0
	// The store keeps the part: it grants to others so much less.
	case s.part > 0 && !s.lapsed(now):
		return parted, s.part
	case w.Share > 0:
		return sharing, int64(w.Share * Whole)
	// From here on the store may have given the part to others.
	case w.Refuse && s.lapsed(now):
		return refusing, 0
	case s.part > 0:
		return past, s.part
	}
	return waiting, 0
}

// since is when the present mode began to serve calls: what it serves then begins empty.
func (s *standing) since(m mode) time.Duration {
	if m == parted || m == past || !s.met || s.part == 0 {
		return s.from()
	}
	return max(s.from(), s.over())
}

// returns ends going on although the store answers, if that is quick enough again. The
// process stops first, tells what it owes, and says so then.
func (s *standing) returns() bool {
	if s.solo == 0 || s.slow || s.pending != nil {
		return false
	}
	s.solo = 0
	s.epoch++
	return true
}

// beat is the next beat, or the one that is not answered yet.
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

// hears takes an answer, of a copy of the beat that was sent at the instant. It reports
// false for one to a beat that was answered already.
func (s *standing) hears(now, copied time.Duration, b *Beat, a *Standing) bool {
	if s.pending != b || a.No == 0 {
		return false
	}
	s.pending = nil
	s.use(now) // what has come of the part until now
	// A part that was over was not held until now, whatever it was used for.
	lapsed := s.met && s.lapsed(now)
	if lapsed {
		s.kept.note(now, 0) // what it held has expired meanwhile
	}
	s.took(now - copied)
	s.met, s.recv, s.sent, s.slept = true, now, s.first, s.nap
	s.said, s.life = time.Duration(b.Silence)*time.Microsecond, time.Duration(b.Life)*time.Microsecond
	had := s.part
	s.ack, s.gen, s.part, s.until = a.No, a.Gen, a.Part, a.Until
	s.kept.note(now, a.Part)
	switch {
	// The process goes by the store.
	case !b.Alone || !s.slow:
		s.solo = 0
		s.epoch++
	// The store knows from this answer on that the process goes on by itself: another use begins.
	case s.solo == 0 || had == 0 || lapsed:
		s.solo = now
		s.epoch++
	}
	s.use(now)
	return true
}

// took notes how long an answer took: an eighth of the difference, as TCP smooths its round trips (RFC 6298).
func (s *standing) took(d time.Duration) {
	if s.rtt == 0 || s.lost { // what was added for answers that did not come says nothing of a store that is back
		s.rtt, s.lost = d, false
	}
	s.rtt += (d - s.rtt) / 8
}

// silentYet reports whether the store has answered nothing so far, and has not failed either.
func (s *standing) silentYet() bool { return !s.met && s.rtt == 0 }

// missed notes that there was none in time: the next may take longer by half.
func (s *standing) missed() { s.rtt, s.lost = min(mostRTT, s.rtt*3/2+10*time.Millisecond), true }

// crowded returns how many processes beat, for the length of the silence. A store that was away has heard few of them at
// first: where fewer are alive than before, the number falls by an eighth of the difference with each answer, so that not all
// return with the short silence of a small fleet.
func (s *standing) crowded(alive int64) int64 {
	s.crowd = max(alive, s.crowd-(s.crowd-alive+7)/8)
	return s.crowd
}

// mostRTT bounds what is taken for the time of an exchange, so that a store that is back is noticed soon.
const mostRTT = 4 * time.Second

// judge reports whether the store is quick enough again for grants that hold for so long to be used,
// and which silence suits it. It is slow when its answers miss that again and again: see guard. Quick enough again
// is two fifths of it. A hold of 0 means that no answer comes too late. The silence grows with how many processes beat, each
// three times in it, so that a store hears 150 a second at most with the usual one.
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

// use is how calls are served now that the store has granted nothing for.
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
	// The supply clock of the use has run at the speed of the part since it was looked at last, in whole numbers.
	if d := int64((now - s.at) / time.Microsecond); d > 0 {
		s.rest += d % Whole * s.speed
		s.z += d/Whole*s.speed + s.rest/Whole
		s.rest %= Whole
		s.at += time.Duration(d) * time.Microsecond
	}
	s.speed = part
	return ownUse{m, part, key, began, s.z}
}

// patient is until when the store is expected to answer, if nothing was heard since.
func (s *standing) patient() time.Duration {
	if !s.met {
		return s.began + s.rules.silence
	}
	return s.recv + s.quiet()
}
