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

// A roster is the process's copy of the members of a group, which are one item.
//
// Asks use the copy, so other processes may have written the item since. Their effect is bounded. A member does not
// use a part that has grown until its Silence has passed after the answer. No Silence is shorter than
// shortestSilence. So a copy is valid for copyLife.
//
// Clocks are known within bounds. All timestamps in the item, and the parts that are out, use the upper bound,
// which makes members silent early. Two timestamps need more care. The time of the last answer to a member uses the
// lower bound, and parts are kept for lifeSlack longer. So no process with wide bounds frees a part too early.
type roster struct {
	hold    chan struct{} // held by a beat, and while the item is written
	reading chan struct{} // held while the item is read

	mu      sync.Mutex
	known   bool
	version int64
	text    []byte // encoded members; nil if there is no item
	sent    int64  // when the request for it was sent, by the process's clock
	epoch   int
	at      int64   // lower bound of the server's clock at sent
	lags    []lagAt // lags of earlier copies, oldest first
	looked  int64   // when the process last looked for members of versions without this item, by its clock; 0 if never
	old     bool    // there are such members
}

// reserve returns the part that no member gets.
func (t instant) reserve() int64 {
	if t.lo == t.hi {
		return 0
	}
	return reserve
}

// A lagAt is the lag of the supply at an instant of the item.
type lagAt struct{ at, lag int64 }

const (
	shortestSilence = leastSilence - 50*time.Millisecond // of a member that can hold a part
	copyLife        = leastSilence - 150*time.Millisecond
	emptyLife       = 4 * time.Second         // of a copy without members: a new member holds no part for 5s
	lifeSlack       = 1500 * time.Millisecond // known bounds are wider than this only if a round trip takes half a second
	keptLags        = 16

	// reserve is the part that no member gets. A process that has just started may be granted this part, because
	// its bounds are too wide to know that no part is out.
	reserve = fleet.Whole * 3 / 100

	// eachBeat is how much longer the Silence is per member: all members together send at most 30 beats per second.
	// They write one item, and a write that conflicts is repeated.
	eachBeat = 100 * time.Millisecond

	// tripsEachBeat is how many round trips longer the Silence is per member, at least. One write of the item takes
	// a round trip, so all heartbeats together use half of the possible writes.
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

// enter waits for a place that one call at a time has. The call leaves it by receiving from place.
func enter(ctx context.Context, place chan struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// seen returns the copy. The version is 0 if there is no item, and negative if there is no copy.
func (r *roster) seen(epoch int) (version int64, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || r.epoch != epoch {
		return -1, nil
	}
	return r.version, r.text
}

func membersItem(group string) string { return name("m", group) }

// learn takes over the item from a response to a request that was sent at was.
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

// copied returns the copy, and whether it is valid at an instant.
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
	if now.lo == now.hi { // the clock is known exactly, and may differ from the process's
		age = max(age, (now.lo-r.at)*1000)
	}
	return m, r.at, age >= 0 && age < int64(life), nil
}

// lagged returns a lower bound of the lag at now. The lag grows at most as fast as the clock.
func (r *roster) lagged(now instant) (lag int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lags {
		lag = max(lag, l.lag-max(0, l.at-now.lo))
	}
	return lag
}

// A supply is the process's knowledge of the units that can be granted of a group.
type supply struct {
	fleet.Supply
	lagLow, lagHigh int64         // bounds of the supply's lag behind the clock
	sure            *fleet.Supply // supply at the earliest possible present while the bounds are wide; nil otherwise
}

// supply returns the supply at an instant. It is empty if the copy is too old.
func (r *roster) supply(now instant) *supply {
	m, at, good, err := r.copied(now)
	switch {
	case err != nil || !good:
		return &supply{Supply: fleet.Supply{Now: now.lo, Z: now.lo, Out: fleet.Whole}}
	case m == nil:
		return &supply{Supply: fleet.Supply{Now: now.lo, Z: now.lo}}
	}
	p := &supply{lagLow: r.lagged(now)}
	// No process wrote between the item's last write and the copy. So members that were silent by then count as out
	// until then, regardless of later writes.
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

// mayGrow returns the free part that a member may have got after the copy was made and before it became silent by
// an instant. since is when the first such member became silent. grown is false if there is none.
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

// sure returns the supply at the earliest possible present.
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

// refresh reads the item if the copy is too old. It writes the item if an ask has a longer window than the members
// know: units spent from expired parts then count for longer.
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

// widen writes the windows of an ask into the item.
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

// isFresh reports whether the copy is valid, and whether the members know the windows of the ask.
func (s *Store) isFresh(r *roster, a *fleet.Ask) (fresh, knows bool, err error) {
	m, _, good, err := r.copied(s.clock.read())
	if err != nil || !good || m == nil || windowOf(a) <= m.Window {
		return good, true, err
	}
	return true, !holdsParts(m) && len(m.Stale) == 0, nil
}

// windowOf returns the longest window of the rolling limits of an ask.
func windowOf(a *fleet.Ask) (longest int64) {
	for i := range a.Claims {
		longest = max(longest, windowOfRule(a.Claims[i].Rule))
	}
	return longest
}

// readUnless reads the item unless the copy is valid when its turn comes. A heartbeat and the first request for
// units that need the item simultaneously read it once.
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
	if was.lo == 0 { // the response has set the time
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

// writeMembers writes the item if its version is still old. 0 means that there is no item. The caller holds the
// roster.
func (s *Store) writeMembers(ctx context.Context, w *work, r *roster, group string, old int64, m *membership) (ok bool, err error) {
	var u update
	text := m.encode()
	now := s.clock.read()
	version := old + 1
	if old == 0 {
		u.absent("v")
		version = now.label // an item that was removed does not return with an earlier version
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
		if len(failed.Item) > 0 { // emulators do not return the item
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
