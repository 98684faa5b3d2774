package weir

import (
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A Record is what became of one call, attempt by attempt: what explains a call, or traces it, is
// made from it. It comes from a pool, and is valid only until the function returns that is given it
// (Events.Recorded, Events.Detailed); who keeps it keeps a copy. It has no answers and no arguments
// of the call, but its ID, keys and note, which are the caller's own.
//
// A decision by Try or Acquire is a call of one attempt.
//
// A call has none while nothing but a first attempt is to be told of it: all that is known of that stands in its
// permit. So a call that goes well has one only if somebody wants it (Events.Wanted).
type Record struct {
	ID    string            // Call.ID
	Keys  map[string]string // Call.Keys
	Note  any               // Call.Note
	Began time.Duration     // the instant, of the upstream's clock
	Took  time.Duration     // to the head of the answer, if a body followed
	Why   error             // one of retry's Err values, or a *Refusal (of a call by Try for Events.Detailed only): why there was no other attempt; nil for a call that went well

	N       uint16        // attempts, that which the gates refused included
	Held    uint8         // attempts that were not made because nothing succeeded
	Class   outcome.Class // of the last attempt; unknown if none was made
	Refused bool          // the gates had the last word: there was no attempt, or no other one
	Part    bool          // Call.Part

	heard uint8 // who of several listeners wants to know more; see Tee

	levels *[]LimitLevel // see Levels

	plan  *plan
	at    time.Duration // the end of the latest attempt
	wait  time.Duration // of the latest refusal
	tries [firstTries + lastTries]tried
}

// A record keeps the first and the last attempts of a call that has more.
const firstTries, lastTries = 3, 3

// A Tried is one attempt of a Record.
type Tried struct {
	N      int           // counts from 1
	Rested time.Duration // between attempts, before it came to the gates
	Waited time.Duration // for its turn
	Asked  time.Duration // of Waited: while the store that a fleet shares was asked, to 1 part in 255
	Limit  string        // that made it wait, or refused it; "" if none did
	Reason Reason        // why it was refused; "" if it was made
	Took   time.Duration // from its turn to its outcome
	Class  outcome.Class
	Code   string        // the upstream's own word for its outcome
	Hint   time.Duration // how long to stay away: of the upstream, or if it was refused, of the limit; 0 if nobody said so
}

// A tried is a Tried in 24 bytes: times are microseconds, at most 71 minutes, and words have numbers.
type tried struct {
	rested, waited, took, hint uint32
	limit, code                uint16
	reason                     uint16 // 0 if it was made
	class                      outcome.Class
	asked                      uint8 // 255ths of waited
}

// records are those that are not in use. They are zero.
var records = sync.Pool{New: func() any { return new(Record) }}

// A Sketch is as much of a call that has ended as costs nothing to say. It has at most four words: the compiler keeps
// a struct of more in memory, and each listener then costs as much as two gates.
type Sketch struct {
	At      time.Duration // its end, an instant of the upstream's clock
	Class   outcome.Class // of its attempt; unknown if none was made
	Refused bool          // the gates have not let it go
}

// A recorded is what a permit has of its call's record.
type recorded struct {
	record *Record       // nil if there is none yet, or nobody wants one
	note   any           // Call.Note
	began  time.Duration // when the call did
	asked  uint32        // microseconds that the present attempt spent with questions to the store
	run    bool          // a Run ends the record, and not the permit
	part   bool          // Call.Part
	closed bool          // it has ended
}

// begins has a record of a call kept that begins, if anybody may want one.
func (k *recorded) begins(p *Permit, u *Upstream, plan *plan, c *Call, now time.Duration, run bool) {
	if u.options.Events.Recorded != nil {
		*k = recorded{note: c.Note, began: now, run: run, part: c.Part}
		p.plan, p.id, p.keys = plan, c.ID, c.Keys
	}
}

// of is the record of the call. It is made if there is none.
func (k *recorded) of(p *Permit) *Record {
	if k.record == nil {
		r := records.Get().(*Record) // a zero one
		r.ID, r.Keys, r.Note, r.Began, r.at, r.plan, r.Part = p.id, p.keys, k.note, k.began, k.began, p.plan, k.part
		k.record = r
	}
	return k.record
}

// wanted reports whether anybody wants the record of a call of which there is none yet.
func (k *recorded) wanted(p *Permit, now time.Duration, class outcome.Class, refused bool) bool {
	f := p.plan.live.u.options.Events.Wanted
	return f == nil || p.waited > 0 || wanted(f).asked(p.id, k.note, Sketch{now, class, refused})
}

// A wanted is a listener of Events.Wanted.
type wanted func(id string, note any, s Sketch) bool

// asked asks the listener, which wants nothing if it panics.
func (f wanted) asked(id string, note any, s Sketch) (yes bool) {
	panics := true
	defer func() {
		if panics { // to ask whether it does costs as much as the rest
			_ = recover()
		}
	}()
	yes = f(id, note, s)
	panics = false
	return yes
}

// decides notes what the gates have said of an attempt. That the first may go is noted when it has ended,
// unless nobody wants to know. A refusal is the end of a single decision.
func (k *recorded) decides(p *Permit, now time.Duration, d step) {
	switch {
	case k.record == nil && !d.refused():
	case k.run:
		k.of(p).decided(p, now, d)
	case k.wanted(p, now, outcome.Unknown, true):
		r := k.of(p)
		r.decided(p, now, d)
		r.end(p, now, nil)
	}
	k.closed = d.refused() && !k.run
}

// ends notes how an attempt has ended, which is the end of a single decision. Whether anybody wants to know of
// a Run that has gone well at once is asked at its end, which is near.
func (k *recorded) ends(p *Permit, now time.Duration, o *outcome.Outcome) {
	switch {
	case k.run && (k.record != nil || o.Class != outcome.OK):
		k.of(p).ended(p, now, o)
	case !k.run && k.wanted(p, now, o.Class, false):
		r := k.of(p)
		r.ended(p, now, o)
		r.end(p, now, nil)
	}
}

// done notes how a Run has ended.
func (k *recorded) done(p *Permit, run *Run, err error, refused bool) {
	if k.record == nil {
		if !k.wanted(p, run.now, run.outcome.Class, refused) {
			return
		}
		if r := k.of(p); run.attempts > 0 { // one, which went well
			r.ended(p, run.now, &run.outcome)
		}
	}
	k.record.done(run, err, refused)
}

// left ends the record of a single decision that came to none: its caller has left, or a gate of the program's
// own would not have it.
func (k *recorded) left(p *Permit, now time.Duration, err error) {
	if !k.closed && k.wanted(p, now, outcome.Canceled, false) {
		r := k.of(p)
		r.Class = outcome.Canceled
		r.end(p, now, err)
	}
}

// decided notes what the gates have said of an attempt.
func (r *Record) decided(p *Permit, now time.Duration, d step) {
	t := &r.tries[tryAt(r.N)]
	r.N++
	waited := max(p.waited, long(p.asked)) // Try does not count what it waits for an answer
	*t = tried{waited: micro(waited), rested: micro(now - waited - r.at), asked: share(p.asked, micro(waited))}
	p.asked = 0
	if c := p.cause(); c.Registry != nil && (waited > 0 || d.refused()) {
		t.limit = words.number(c.Registry.Limit().Name)
	}
	if r.at = now; d.refused() {
		t.reason, t.hint, r.wait, r.Refused = words.number(string(d.why)), micro(d.wait), d.wait, true
	}
}

// ended notes how an attempt ended.
func (r *Record) ended(p *Permit, now time.Duration, o *outcome.Outcome) {
	if r.N == 0 {
		r.decided(p, p.sent, goOn)
	}
	t := &r.tries[tryAt(r.N-1)]
	took, _ := p.took(now)
	t.took, t.class, t.code = micro(took), o.Class, words.number(o.Code)
	if o.Hint.Said {
		t.hint = micro(o.Hint.After)
	}
	r.Class, r.at = o.Class, now
}

// done notes how a Run has ended.
func (r *Record) done(run *Run, err error, refused bool) {
	r.Class, r.Refused, r.Held = run.outcome.Class, refused, uint8(min(run.held, math.MaxUint8))
	r.end(&run.permit, run.now, err)
}

// end tells of a call that has ended with an error, nil for none, and has the record used again.
func (r *Record) end(p *Permit, now time.Duration, err error) {
	_, body := p.took(now)
	p.record, r.Took = nil, max(0, now-body-r.Began)
	switch e := err.(type) {
	case *Refusal:
		r.Why = e
	case *retry.GaveUpError:
		r.Why = e.Why
	}
	if events := &r.plan.live.u.options.Events; r.tell(events.Recorded) {
		r.detail(p, now)
		tell(events.Detailed, r)
	}
	*r = Record{}
	records.Put(r)
}

// tell tells of the record, and reports whether there is to be more of it.
func (r *Record) tell(f func(*Record) bool) (more bool) {
	tell(func(r *Record) { more = f(r) }, r)
	return more
}

// detail adds what costs something to make.
func (r *Record) detail(p *Permit, now time.Duration) {
	if r.N == 0 {
		return
	}
	levels := p.levels(now)
	r.levels = &levels
	if why := r.tries[tryAt(r.N-1)].reason; r.Refused && why != 0 && r.Why == nil {
		r.Why = step{why: Reason(words.word(why)), wait: r.wait}.refusal(p, now)
	}
}

// Body returns how long the body of the last answer took, after Took.
func (r *Record) Body() time.Duration { return max(0, r.at-r.Began-r.Took) }

// Subject says whose record it is.
func (r *Record) Subject() Subject { return subject(r.plan.live.u, r.plan, r.ID, r.Keys) }

// Levels is what the limits look like that the last attempt was charged to. It is there for Events.Detailed only.
func (r *Record) Levels() []LimitLevel {
	if r.levels == nil {
		return nil
	}
	return *r.levels
}

// Waited is how long the call waited for its turn, in the attempts that are kept.
func (r *Record) Waited() (all time.Duration) {
	for i := range r.tries {
		all += long(r.tries[i].waited)
	}
	return all
}

// Attempts are the attempts of the call, in order; the first and the last three, if there were more than six.
func (r *Record) Attempts() []Tried {
	all := make([]Tried, 0, min(int(r.N), len(r.tries)))
	for a := range r.Each {
		all = append(all, a)
	}
	return all
}

// Each is Attempts one after the other, which costs no memory.
func (r *Record) Each(yield func(Tried) bool) {
	for n := range r.N {
		if n >= firstTries && n+lastTries < r.N {
			continue
		}
		t := &r.tries[tryAt(n)]
		e := Tried{
			N: int(n + 1), Rested: long(t.rested), Waited: long(t.waited), Asked: long(t.waited) * time.Duration(t.asked) / math.MaxUint8, Took: long(t.took), Hint: long(t.hint),
			Limit: words.word(t.limit), Reason: Reason(words.word(t.reason)), Class: t.class, Code: words.word(t.code),
		}
		if !yield(e) {
			return
		}
	}
}

// tryAt is where the record keeps an attempt, counted from 0.
func tryAt(n uint16) uint16 {
	if n < firstTries {
		return n
	}
	return firstTries + (n-firstTries)%lastTries
}

// micro is a duration in microseconds, as far as 32 bits reach; bucket.Never is the most. A duration that is not 0
// is 1 at least.
func micro(d time.Duration) uint32 {
	switch {
	case d <= 0:
		return 0
	case d >= math.MaxUint32*time.Microsecond:
		return math.MaxUint32
	}
	return max(1, uint32(d/time.Microsecond))
}

// share is a part of a whole in 255ths, rounded; 1 at least, if there is any.
func share(part, whole uint32) uint8 {
	if part == 0 || whole == 0 {
		return 0
	}
	return uint8(max(1, (uint64(min(part, whole))*math.MaxUint8+uint64(whole)/2)/uint64(whole)))
}

// long is the duration of so many microseconds.
func long(us uint32) time.Duration {
	if us == math.MaxUint32 {
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}
