package dynamostore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// Beat implements fleet.Store. The members of a group are one item, which each beat updates. The process usually
// has a copy, so a beat is one request unless another process has written the item meanwhile.
func (s *Store) Beat(ctx context.Context, b *fleet.Beat) (a fleet.Standing, err error) {
	if err := b.Check(); err != nil {
		return a, err
	}
	w, err := s.start(ctx, "beat", b.Group)
	if err == nil {
		a, err = s.beat(ctx, w, b)
	}
	if err = s.end(w, err); err != nil {
		return fleet.Standing{}, err
	}
	return a, nil
}

func (s *Store) beat(ctx context.Context, w *work, b *fleet.Beat) (a fleet.Standing, err error) {
	r := s.roster(b.Group)
	if err := enter(ctx, r.hold); err != nil {
		return a, err
	}
	defer func() { <-r.hold }()
	// The response to a failed write contains what another process wrote. The next write follows immediately: after
	// a pause it would more likely fail again.
	for round := 0; round < beatRounds; round++ {
		has := func() bool { version, _ := r.seen(s.clock.read().epoch); return version >= 0 }
		if !has() {
			if err := s.readUnless(ctx, w, r, b.Group, has); err != nil {
				return a, err
			}
		}
		if err := s.lookForOld(ctx, w, r, b.Group); err != nil {
			return a, err
		}
		a, done, err := s.beatOnce(ctx, w, r, b)
		if errors.Is(err, errRough) {
			s.calibrate()
			round--
			err = s.o.sleep(ctx, 2*pace)
		}
		if done || err != nil {
			return a, err
		}
	}
	return a, errBusy
}

// beatOnce applies a beat to the copy, and writes the result.
func (s *Store) beatOnce(ctx context.Context, w *work, r *roster, b *fleet.Beat) (a fleet.Standing, done bool, err error) {
	now := s.clock.read()
	m := newMembership(now.hi)
	version, text := r.seen(now.epoch)
	if version < 0 {
		return a, false, nil
	}
	if version > 0 {
		if m, err = decode(text); err != nil {
			return a, false, err
		}
	}
	if now.rough && holdsParts(m) { // its timestamps would make all other members silent
		return a, false, errRough
	}
	// Another copy of the heartbeat was answered. Another write would only conflict with other members.
	row := m.Rows[b.Client]
	answered := row != nil && b.Seq <= row.Seq && !b.Leave
	a = m.beat(now, b, r.old)
	if !answered {
		sent := s.clock.mono()
		if done, err = s.writeMembers(ctx, w, r, b.Group, version, m); !done || err != nil {
			return fleet.Standing{}, false, err
		}
		w.took = time.Duration(s.clock.mono() - sent)
	}
	a.Now, a.Asks = s.clock.read().time(), true
	width := micro(now.hi - now.lo)
	// A member knows that the answer to a beat has arrived only at the next beat, which may be five sixths of a
	// Silence later.
	a.Least = max(leastSilence, time.Duration(a.Alive)*max(eachBeat, tripsEachBeat*w.took), 3*time.Second/4+4*width+3*(w.took-nearBeat)).Microseconds()
	return a, true, nil
}

// errRough makes a beat wait: the bounds of the clock are too wide.
var errRough = errors.New("the table's clock is not measured yet")

func holdsParts(m *membership) bool {
	for _, o := range m.Rows {
		if o.Part > 0 {
			return true
		}
	}
	return m.Unknown > 0
}

// beatRounds is the maximum number of writes per heartbeat. Of concurrent writers, one succeeds in each round trip.
const beatRounds = 100

const (
	// noneFor is how long after a beat without a part a client gets no part: processes with an old copy do not
	// count it.
	noneFor = 3 * time.Second
	// leastSilence is the Silence of members near the table. It tolerates a lost beat or two.
	leastSilence = 1200 * time.Millisecond
	// nearBeat is how long a beat may take without a longer Silence.
	nearBeat = 30 * time.Millisecond
)

// beat is Members.Beat for a clock with bounds.
func (m *membership) beat(now instant, b *fleet.Beat, old bool) fleet.Standing {
	said := *b
	said.Alone = false
	if now.lo != now.hi {
		said.Life += lifeSlack.Microseconds()
	}
	o := m.Rows[b.Client]
	if now.lo != now.hi && time.Duration(b.Silence)*time.Microsecond < shortestSilence || old || now.hi-m.none[b.Client] < noneFor.Microseconds() && !b.None {
		said.None = true
	}
	// A member that counts as silent may use its part from now on. Its part does not grow before it acknowledges an
	// answer.
	said.Bound = fleet.Whole - now.reserve() - m.Unknown
	for client, other := range m.Rows {
		if client != b.Client {
			said.Bound -= other.Part
		}
	}
	if said.Bound <= 0 || o == nil || o.Ack+o.Silence <= now.hi {
		said.Bound = -1
	}
	a := m.Beat(now.hi, &said)
	for client := range m.none {
		if m.Rows[client] == nil {
			delete(m.none, client)
		}
	}
	if o = m.Rows[b.Client]; o == nil {
		return a
	}
	o.Last = min(o.Last, now.lo)
	if b.None {
		m.none[b.Client] = max(1, now.hi)
	} else if now.hi-m.none[b.Client] >= noneFor.Microseconds() {
		delete(m.none, b.Client)
	}
	return a
}

// Earlier versions grant no parts, have no item of members, and do not count parts that are out. While members of
// earlier versions are alive, no process gets a part. They announce themselves in attributes of some items per
// group.
const (
	oldItems  = 8
	lookEvery = 10 * time.Second
)

func oldItem(group string, i int) string { return name("b", group, strconv.Itoa(i)) }

// lookForOld checks every lookEvery for members of earlier versions. The caller holds the roster.
func (s *Store) lookForOld(ctx context.Context, w *work, r *roster, group string) error {
	now := s.clock.mono()
	if r.looked != 0 && now-r.looked < int64(lookEvery) {
		return nil
	}
	var names []string
	for i := range oldItems {
		names = append(names, oldItem(group, i))
	}
	items, err := s.getAll(ctx, w, names)
	if err != nil {
		return err
	}
	r.looked, r.old = max(1, now), false
	at := s.clock.read()
	for _, attributes := range items {
		it := make(item)
		it.learn(attributes)
		for name := range it {
			until, _ := it.number(name)
			r.old = r.old || strings.HasPrefix(name, "c") && len(name) == 17 && at.lo < until
		}
	}
	return nil
}
