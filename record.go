package weir

import (
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A Record describes one call, attempt by attempt. Explanations and traces of a call are made from it. Records are
// pooled: a Record is valid only until the function that receives it (Events.Recorded, Events.Detailed) returns, so a
// listener must copy what it keeps. It contains no responses and no arguments of the call except ID, keys and note,
// which belong to the caller.
//
// A decision by Try or Acquire is a call of one attempt.
//
// A call that succeeds in its first attempt has a Record only if a listener wants it (Events.Wanted), because its
// permit contains everything to report.
type Record struct {
	ID    string            // Call.ID
	Keys  map[string]string // Call.Keys
	Note  any               // Call.Note
	Began time.Duration     // an instant of the upstream's clock
	Took  time.Duration     // up to the headers of the response, if a body followed
	Why   error             // why there was no further attempt: one of retry's Err values, or a *Refusal (for Try only in Events.Detailed); nil for success

	N       uint16        // number of attempts, including a refused one
	Held    uint8         // attempts held back because none succeeded
	Class   outcome.Class // of the last attempt; unknown if none was made
	Refused bool          // the gates refused the only or the last attempt
	Part    bool          // Call.Part

	heard uint8 // bits of the listeners that want details; see Tee

	levels *[]LimitLevel // see Levels

	plan  *plan
	at    time.Duration // end of the latest attempt
	wait  time.Duration // of the latest refusal
	tries [firstTries + lastTries]tried
}

// A Record keeps the first and the last attempts of a call.
const firstTries, lastTries = 3, 3

// A Tried is one attempt of a Record.
type Tried struct {
	N      int           // counted from 1
	Rested time.Duration // wait between attempts, before the gates were asked
	Waited time.Duration // wait for its turn
	Asked  time.Duration // part of Waited during which the fleet's store was asked, rounded to 1/255
	Limit  string        // the limit that made it wait or refused it; "" if none
	Reason Reason        // why it was refused; "" if it was made
	Took   time.Duration // from its admission to its outcome
	Class  outcome.Class
	Code   string        // the upstream's code for its outcome
	Hint   time.Duration // wait that the upstream asked for, or the limit if it was refused; 0 if none
}

// A tried is a Tried in 24 bytes. Times are in microseconds, up to 71 minutes. Strings are replaced by numbers.
type tried struct {
	rested, waited, took, hint uint32
	limit, code                uint16
	reason                     uint16 // 0 if it was made
	class                      outcome.Class
	asked                      uint8 // 255ths of waited
}

// records has the unused records, which are zero.
var records = sync.Pool{New: func() any { return new(Record) }}

// A Sketch describes a call that has ended, as far as that costs nothing. It must not exceed four words: the compiler
// keeps larger structs in memory, and each listener would then cost as much as two gates.
type Sketch struct {
	At      time.Duration // when it ended, an instant of the upstream's clock
	Class   outcome.Class // class of its attempt; unknown if none was made
	Refused bool          // the gates refused it
}

// A recorded links a permit to the record of its call.
type recorded struct {
	record *Record       // nil if there is none yet
	note   any           // Call.Note
	began  time.Duration // when the call began
	asked  uint32        // microseconds that the present attempt spent asking the store
	run    bool          // a Run ends the record instead of the permit
	part   bool          // Call.Part
	closed bool          // the record has ended
}

// begins prepares the record of a call that begins, if there is a listener.
func (k *recorded) begins(p *Permit, u *Upstream, plan *plan, c *Call, now time.Duration, run bool) {
	if u.options.Events.Recorded != nil {
		*k = recorded{note: c.Note, began: now, run: run, part: c.Part}
		p.plan, p.id, p.keys = plan, c.ID, c.Keys
	}
}

// of returns the record of the call, and makes it if necessary.
func (k *recorded) of(p *Permit) *Record {
	if k.record == nil {
		r := records.Get().(*Record) // a zero one
		r.ID, r.Keys, r.Note, r.Began, r.at, r.plan, r.Part = p.id, p.keys, k.note, k.began, k.began, p.plan, k.part
		k.record = r
	}
	return k.record
}

// wanted reports whether a listener wants the record of a call that has none yet.
func (k *recorded) wanted(p *Permit, now time.Duration, class outcome.Class, refused bool) bool {
	f := p.plan.live.u.options.Events.Wanted
	return f == nil || p.waited > 0 || wanted(f).asked(p.id, k.note, Sketch{now, class, refused})
}

// A wanted is a function for Events.Wanted.
type wanted func(id string, note any, s Sketch) bool

// asked calls the function. If it panics, it wants nothing.
func (f wanted) asked(id string, note any, s Sketch) (yes bool) {
	panics := true
	defer func() {
		if panics { // recover alone would cost as much as the rest
			_ = recover()
		}
	}()
	yes = f(id, note, s)
	panics = false
	return yes
}

// decides notes the decision about an attempt. The admission of a first attempt is noted when the attempt ends. A
// refusal ends a single decision.
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

// ends notes the outcome of an attempt, which ends a single decision. For a Run whose first attempt succeeded, done
// asks whether the record is wanted.
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

// done notes the end of a Run.
func (k *recorded) done(p *Permit, run *Run, err error, refused bool) {
	if k.record == nil {
		if !k.wanted(p, run.now, run.outcome.Class, refused) {
			return
		}
		if r := k.of(p); run.attempts > 0 { // one successful attempt
			r.ended(p, run.now, &run.outcome)
		}
	}
	k.record.done(run, err, refused)
}

// left ends the record of a single decision without a result: its caller has left, or a custom gate returned an
// error.
func (k *recorded) left(p *Permit, now time.Duration, err error) {
	if !k.closed && k.wanted(p, now, outcome.Canceled, false) {
		r := k.of(p)
		r.Class = outcome.Canceled
		r.end(p, now, err)
	}
}

// decided notes the decision about an attempt.
func (r *Record) decided(p *Permit, now time.Duration, d step) {
	t := &r.tries[tryAt(r.N)]
	r.N++
	waited := max(p.waited, long(p.asked)) // Try does not count its wait for the store
	*t = tried{waited: micro(waited), rested: micro(now - waited - r.at), asked: share(p.asked, micro(waited))}
	p.asked = 0
	if c := p.cause(); c.Registry != nil && (waited > 0 || d.refused()) {
		t.limit = words.number(c.Registry.Limit().Name)
	}
	if r.at = now; d.refused() {
		t.reason, t.hint, r.wait, r.Refused = words.number(string(d.why)), micro(d.wait), d.wait, true
	}
}

// ended notes the outcome of an attempt.
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

// done notes the end of a Run.
func (r *Record) done(run *Run, err error, refused bool) {
	r.Class, r.Refused, r.Held = run.outcome.Class, refused, uint8(min(run.held, math.MaxUint8))
	r.end(&run.permit, run.now, err)
}

// end reports a call that has ended, with its error or nil, and returns the record to the pool.
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

// tell calls the listener, and reports whether it wants details.
func (r *Record) tell(f func(*Record) bool) (more bool) {
	tell(func(r *Record) { more = f(r) }, r)
	return more
}

// detail adds what is costly to make.
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

// Body returns how long the body of the last response took, after Took.
func (r *Record) Body() time.Duration { return max(0, r.at-r.Began-r.Took) }

// Subject returns the subject of the record.
func (r *Record) Subject() Subject { return subject(r.plan.live.u, r.plan, r.ID, r.Keys) }

// Levels returns the state of the limits that the last attempt was charged to. It is set only for Events.Detailed.
func (r *Record) Levels() []LimitLevel {
	if r.levels == nil {
		return nil
	}
	return *r.levels
}

// Waited returns how long the call waited for its turn, in the attempts that the record keeps.
func (r *Record) Waited() (all time.Duration) {
	for i := range r.tries {
		all += long(r.tries[i].waited)
	}
	return all
}

// Attempts returns the attempts of the call in order. Of more than six it returns the first three and the last three.
func (r *Record) Attempts() []Tried {
	all := make([]Tried, 0, min(int(r.N), len(r.tries)))
	for a := range r.Each {
		all = append(all, a)
	}
	return all
}

// Each yields the same attempts as Attempts, without allocating.
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

// tryAt returns the index of an attempt, counted from 0.
func tryAt(n uint16) uint16 {
	if n < firstTries {
		return n
	}
	return firstTries + (n-firstTries)%lastTries
}

// micro returns a duration in microseconds, at least 1 unless it is 0. A duration beyond 32 bits, such as
// bucket.Never, is the maximum.
func micro(d time.Duration) uint32 {
	switch {
	case d <= 0:
		return 0
	case d >= math.MaxUint32*time.Microsecond:
		return math.MaxUint32
	}
	return max(1, uint32(d/time.Microsecond))
}

// share returns part/whole in 255ths, rounded, and at least 1 if part is not 0.
func share(part, whole uint32) uint8 {
	if part == 0 || whole == 0 {
		return 0
	}
	return uint8(max(1, (uint64(min(part, whole))*math.MaxUint8+uint64(whole)/2)/uint64(whole)))
}

// long is the inverse of micro.
func long(us uint32) time.Duration {
	if us == math.MaxUint32 {
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}
