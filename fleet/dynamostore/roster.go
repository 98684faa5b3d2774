package dynamostore

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
)

// A roster is what this process knows of the members of a group: a copy of the group's item.
//
// Whoever asks for units goes by a copy, so others may have written the item since. What they may have written is
// bounded: no member uses its part earlier than its silence after the answer by which it grew, and no silence is
// shorter than shortestSilence. So a copy is good for copyLife.
//
// Clocks are known within bounds. Everything in the item is stamped, and who is out is counted, by the upper bound,
// which makes members silent early. Two stamps must not be late or early for that: when a member was answered is
// stamped by the lower bound, and parts are kept for lifeSlack longer, so that no process with wide bounds frees a part
// early.
type roster struct {
	hold    chan struct{} // held by a beat, and while the item is written
	reading chan struct{} // held while the item is read

	mu      sync.Mutex
	known   bool
	version int64
	text    []byte // encoded members; nil if there is no item
	sent    int64  // when the request was sent that brought it, by our clock
	epoch   int
	at      int64   // the lower bound of the server's clock then
	lags    []lagAt // of earlier copies, the oldest first
	looked  int64   // when it was looked for members of versions that keep no item, by our clock; 0 if never
	old     bool    // there are some
}

// reserve is the part that nobody is given.
func (t instant) reserve() int64 {
	if t.lo == t.hi {
		return 0
	}
	return reserve
}

// A lagAt is by how much the supply was behind at an instant of the item.
type lagAt struct{ at, lag int64 }

const (
	shortestSilence = leastSilence - 50*time.Millisecond // of a member that can hold a part
	copyLife        = leastSilence - 150*time.Millisecond
	emptyLife       = 4 * time.Second         // of a copy without members: a new one holds no part for 5s
	lifeSlack       = 1500 * time.Millisecond // bounds of a clock that is known are wider only if a round trip takes half a second
	keptLags        = 16

	// reserve is the part that nobody is given. A process that has just started does not know the time well enough to know that
	// nobody is out: it can be granted so much.
	reserve = fleet.Whole * 3 / 100

	// eachBeat is how much longer the silence is for each member: 30 beats a second at most of all, however many there are.
	// They all write one item, and those that write at once write again.
	eachBeat = 100 * time.Millisecond

	// tripsEachBeat is how many round trips longer the silence is for each member, at least. One write of the item fits in a round trip,
	// so that all heartbeats together take half of the writes that fit.
	tripsEachBeat = 6
)

func (s *Store) roster(group string) *roster {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rosters[group]
	if r == nil {
		r = &roster{hold: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
		s.rosters[group] = r
	}
	return r
}

// enter takes a place that one call at a time has; the call leaves it by receiving.
func enter(ctx context.Context, place chan struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// seen is the item as the copy has it. The version is 0 if there is no item, and below 0 if there is no copy.
func (r *roster) seen(epoch int) (version int64, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || r.epoch != epoch {
		return -1, nil
	}
	return r.version, r.text
}

func membersItem(group string) string { return name("m", group) }

// learn takes over the item from a response to a request that was sent at an instant.
func (r *roster) learn(attributes map[string]types.AttributeValue, version int64, text []byte, was instant) {
	if attributes != nil {
		it := make(item)
		it.learn(attributes)
		version, _ = it.number("v")
		if b, ok := attributes["m"].(*types.AttributeValueMemberB); ok {
			text = b.Value
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known && version < r.version && r.epoch == was.epoch {
		return
	}
	r.known, r.version, r.text, r.sent, r.at, r.epoch = true, version, text, was.mono, was.lo, was.epoch
	if m, err := decode(text); err == nil {
		lag := lagAt{m.At, m.At - m.Z(m.At)}
		if n := len(r.lags); n == 0 || r.lags[n-1].at < lag.at {
			r.lags = append(r.lags, lag)
		}
		if n := len(r.lags); n > keptLags {
			r.lags = slices.Delete(r.lags, 0, n-keptLags)
		}
	}
}

// copied is the copy, and whether it is good at an instant.
func (r *roster) copied(now instant) (m *membership, at int64, good bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || r.epoch != now.epoch {
		return nil, 0, false, nil
	}
	life := copyLife
	if r.text != nil {
		if m, err = decode(r.text); err != nil {
			return nil, 0, false, err
		}
	}
	if m == nil || len(m.Rows) == 0 && m.Unknown == 0 {
		life = emptyLife
	}
	age := now.mono - r.sent
	if now.lo == now.hi { // the clock is known exactly, and may be another than ours
		age = max(age, (now.lo-r.at)*1000)
	}
	return m, r.at, age >= 0 && age < int64(life), nil
}

// lagged is a lower bound of the lag as of now: it grows as fast as the clock at most.
func (r *roster) lagged(now instant) (lag int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lags {
		lag = max(lag, l.lag-max(0, l.at-now.lo))
	}
	return lag
}

// A supply is what can be granted of a group, as far as a process knows it.
type supply struct {
	fleet.Supply
	lagLow, lagHigh int64         // bounds of by how much the supply is behind the clock
	sure            *fleet.Supply // what is out for certain, where the clock is not known well; nil where it is
}

// supply is what can be granted at an instant: nothing if the copy is too old.
func (r *roster) supply(now instant) *supply {
	m, at, good, err := r.copied(now)
	switch {
	case err != nil || !good:
		return &supply{Supply: fleet.Supply{Now: now.lo, Z: now.lo, Out: fleet.Whole}}
	case m == nil:
		return &supply{Supply: fleet.Supply{Now: now.lo, Z: now.lo}}
	}
	p := &supply{lagLow: r.lagged(now)}
	// Nobody had written until the copy was made: whoever was silent by then counts as out until then, whatever is written later.
	if before, at, good, _ := r.copied(now); good && before != nil {
		before.Turn(at)
		p.lagLow = max(p.lagLow, before.At-before.Z(before.At)-max(0, before.At-now.lo))
	}
	free, since, grown := m.mayGrow(at, now.hi, now.reserve())
	p.Supply = *m.Supply(now.hi)
	p.lagHigh = max(now.hi, m.At) - p.Z
	if grown {
		p.Out = min(fleet.Whole, p.Out+free)
		p.lagHigh += (now.hi - since) * free / fleet.Whole
		p.lagHigh++
	}
	if now.rough && p.Out > 0 && micro(now.hi-now.lo) < lifeSlack {
		p.sure = r.sure(now)
	}
	p.Now, p.Z = now.lo, now.lo-p.lagHigh
	return p
}

// mayGrow is what a member may have been given since the copy was made that has fallen silent by an instant: what is free
// before. It is since when the first of them was silent; grown is false if there is none.
func (m *membership) mayGrow(at, by, reserve int64) (free, since int64, grown bool) {
	free, since = fleet.Whole-reserve-m.Unknown, by
	for client, o := range m.Rows {
		free -= o.Part
		if silent := o.Ack + o.Silence; silent > at && silent <= by && at < by && m.none[client] == 0 {
			grown, since = true, min(since, silent)
		}
	}
	return max(0, free), since, grown
}

// sure is what was out at the earliest instant that may be the present.
func (r *roster) sure(now instant) *fleet.Supply {
	m, at, good, err := r.copied(now)
	if err != nil || !good || m == nil {
		return nil
	}
	by := max(now.lo, m.At)
	for _, o := range m.Rows {
		if silent := o.Ack + o.Silence; !o.Late && o.Part > 0 && silent > by && silent <= now.hi {
			return nil
		}
	}
	free, _, grown := m.mayGrow(at, by, now.reserve())
	p := m.Supply(by)
	if p.Now = now.lo; grown {
		p.Out = min(fleet.Whole, p.Out+free)
	}
	return p
}

// refresh reads the item if the copy is too old, and writes it if an ask names a longer window than the members know: what
// expired parts spent counts for longer then.
func (s *Store) refresh(ctx context.Context, w *work, a *fleet.Ask) error {
	r := s.roster(a.Group)
	for range rounds {
		fresh, knows, err := s.isFresh(r, a)
		switch {
		case err != nil || fresh && knows:
			return err
		case fresh:
			err = s.widen(ctx, w, r, a)
		default:
			err = s.readUnless(ctx, w, r, a.Group, func() bool { fresh, _, _ := s.isFresh(r, a); return fresh })
		}
		if err != nil {
			return err
		}
	}
	return errBusy
}

// widen lets the members know the windows of an ask.
func (s *Store) widen(ctx context.Context, w *work, r *roster, a *fleet.Ask) error {
	if err := enter(ctx, r.hold); err != nil {
		return err
	}
	defer func() { <-r.hold }()
	now := s.clock.read()
	version, text := r.seen(now.epoch)
	if version <= 0 {
		return nil
	}
	m, err := decode(text)
	if err != nil {
		return err
	}
	m.Turn(now.hi)
	m.Asked(m.At, a)
	m.Window = max(m.Window, windowOf(a))
	_, err = s.writeMembers(ctx, w, r, a.Group, version, m)
	return err
}

// isFresh reports whether the copy is good, and whether the members know the windows of the ask.
func (s *Store) isFresh(r *roster, a *fleet.Ask) (fresh, knows bool, err error) {
	m, _, good, err := r.copied(s.clock.read())
	if err != nil || !good || m == nil || windowOf(a) <= m.Window {
		return good, true, err
	}
	return true, !holdsParts(m) && len(m.Stale) == 0, nil
}

// windowOf is the longest window of the rolling limits of an ask.
func windowOf(a *fleet.Ask) (longest int64) {
	for i := range a.Claims {
		longest = max(longest, windowOfRule(a.Claims[i].Rule))
	}
	return longest
}

// readUnless reads the item unless the copy is good by then. A heartbeat and the first request for units, which need the
// item at the same time, read it once.
func (s *Store) readUnless(ctx context.Context, w *work, r *roster, group string, good func() bool) error {
	if err := enter(ctx, r.reading); err != nil {
		return err
	}
	defer func() { <-r.reading }()
	if good() {
		return nil
	}
	return s.readMembers(ctx, w, r, group)
}

// readMembers reads the item.
func (s *Store) readMembers(ctx context.Context, w *work, r *roster, group string) error {
	var out *dynamodb.GetItemOutput
	var was instant
	in := &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf(membersItem(group)), ConsistentRead: aws.Bool(true)}
	err := s.try(ctx, w, func() (err error) {
		was = s.clock.read()
		out, err = s.api.GetItem(ctx, in, s.options)
		return err
	})
	if err != nil {
		return err
	}
	if !s.clock.isKnown() {
		return errNoDate
	}
	if was.lo == 0 { // the response has told the time
		was.lo = s.clock.read().lo - (s.clock.read().mono-was.mono)/1000 - 1
		was.epoch = s.clock.read().epoch
	}
	attributes := out.Item
	if attributes == nil {
		attributes = map[string]types.AttributeValue{}
	}
	r.learn(attributes, 0, nil, was)
	return nil
}

// writeMembers writes the item if it has the version still; 0 means that there is none. The roster is held.
func (s *Store) writeMembers(ctx context.Context, w *work, r *roster, group string, old int64, m *membership) (ok bool, err error) {
	var u update
	text := m.encode()
	now := s.clock.read()
	version := old + 1
	if old == 0 {
		u.absent("v")
		version = now.label // an item that was forgotten does not come back with a version that it has had
	} else {
		u.needs("v", "=", u.number(strconv.FormatInt(old, 10)))
	}
	u.setNumber("v", strconv.FormatInt(version, 10))
	u.setTo("m", u.value(&types.AttributeValueMemberB{Value: text}))
	u.setNumber("#ttl", strconv.FormatInt(now.label/1e6+life, 10))
	was := now
	err = s.try(ctx, w, func() error {
		was = s.clock.read()
		_, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: keyOf(membersItem(group)),
			UpdateExpression:                    aws.String(u.expression()),
			ConditionExpression:                 aws.String(u.when.String()),
			ExpressionAttributeValues:           u.values,
			ExpressionAttributeNames:            map[string]string{"#ttl": "ttl"},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, s.options)
		return err
	})
	if failed := notAsExpected(err); failed != nil {
		w.Failed++
		if len(failed.Item) > 0 { // emulators do not say what they found
			r.learn(failed.Item, 0, nil, was)
			return false, nil
		}
		return false, s.readMembers(ctx, w, r, group)
	}
	if err != nil {
		return false, err
	}
	r.learn(nil, version, text, was)
	return true, nil
}
