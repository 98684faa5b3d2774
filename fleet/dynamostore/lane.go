package dynamostore

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/fleet"
)

// What lanes were told last stands in attributes l0, l1, and so on: the lane, the ask,
// the second, the copies granted, and what was granted besides to each claim. Each lane
// has one of them to itself as long as there are enough.

// An answer is what a lane remembers.
type answer struct {
	lane, id uint64
	second   int64
	granted  int64
	extras   []int64
}

func (a *answer) prefix() string {
	return strconv.FormatUint(a.lane, 36) + "." + strconv.FormatUint(a.id, 36) + "."
}

func (a *answer) String() string {
	var b strings.Builder
	b.WriteString(a.prefix())
	b.WriteString(strconv.FormatInt(a.second, 36))
	for _, n := range append([]int64{a.granted}, a.extras...) {
		b.WriteByte('.')
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

func parseAnswer(text string) (a answer) {
	f := strings.Split(text, ".")
	if len(f) < 4 {
		return a
	}
	a.lane, _ = strconv.ParseUint(f[0], 36, 64)
	a.id, _ = strconv.ParseUint(f[1], 36, 64)
	a.second, _ = strconv.ParseInt(f[2], 36, 64)
	a.granted, _ = strconv.ParseInt(f[3], 10, 64)
	for _, n := range f[4:] {
		extra, _ := strconv.ParseInt(n, 10, 64)
		a.extras = append(a.extras, extra)
	}
	return a
}

// A seat is the attribute that is a lane's.
type seat struct {
	name string
	old  string // what is in it
	own  bool   // by the lane itself
	free bool   // nothing is in it
	warm bool   // another's, of less than a minute ago
	last answer // if own
}

func seatName(i int) string { return "l" + strconv.Itoa(i) }

// seat finds the lane's own, or a free one, or the one that was used longest ago.
func (s *Store) seat(it item, lane uint64, second int64) seat {
	var free, oldest seat
	age := int64(-1)
	h := fnv.New64a()
	h.Write([]byte(strconv.FormatUint(lane, 36)))
	for k := range s.o.Lanes {
		name := seatName(int((h.Sum64() + uint64(k)) % uint64(s.o.Lanes)))
		text, ok := it[name]
		if !ok {
			if free.name == "" {
				free = seat{name: name, free: true}
			}
			continue
		}
		a := parseAnswer(text)
		if a.lane == lane {
			return seat{name: name, old: text, own: true, last: a}
		}
		if d := second - a.second; d > age {
			age, oldest = d, seat{name: name, old: text, warm: d <= int64(fleet.LaneKeep.Seconds())}
		}
	}
	if free.name != "" {
		return free
	}
	return oldest
}

// A sent is an update of which it may not be known whether it was executed: it is not if
// the seat is as it was.
type sent struct {
	item, seat, old string
	free            bool
}

func (t seat) sent(item string) sent { return sent{item, t.name, t.old, t.free} }

// A failure is what is remembered of an ask that failed, for its repeat.
type failure struct {
	sent []sent // one for each item, at most
	void bool   // some of what it was granted may still be given back: it is granted nothing any more
}

const mostPending = 4096

// fails notes of an ask what was sent for an item, or that it is void.
func (s *Store) fails(id uint64, note func(f *failure)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.pending[id]
	for old := range s.pending {
		if f != nil || len(s.pending) < mostPending {
			break
		}
		delete(s.pending, old)
	}
	if f == nil {
		f = new(failure)
		s.pending[id] = f
	}
	note(f)
}

// remembers keeps what was sent for an item, unless that is known of an earlier call: what
// that sent may be what was executed.
func (s *Store) remembers(id uint64, was sent) {
	s.fails(id, func(f *failure) {
		if f.of(was.item) == nil {
			f.sent = append(f.sent, was)
		}
	})
}

// recalls is what was sent for an item by an earlier call with the ID, and whether the ask is void.
func (s *Store) recalls(id uint64, item string) (was *sent, void bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.pending[id]
	if f == nil {
		return nil, false
	}
	return f.of(item), f.void
}

func (f *failure) of(item string) *sent {
	for i := range f.sent {
		if f.sent[i].item == item {
			was := f.sent[i]
			return &was
		}
	}
	return nil
}

// write lets the lane remember an answer. If once is set nobody may have written to
// the seat since it was seen: then the update is executed once at most, whenever it
// arrives. What gives units back needs that. When several updates of a lane are on their
// way it is enough for others that the answer is not there yet.
func (t seat) write(u *update, a *answer, once bool) {
	switch {
	case t.free:
		u.absent(t.name)
	case once || !t.own && !t.warm:
		u.needs(t.name, "=", u.text(t.old))
	default:
		u.needs("NOT begins_with("+t.name+",", u.text(a.prefix())+")")
	}
	u.setText(t.name, a.String())
}

// A memory is the latest answer to a lane that this process has heard itself. The
// table remembers what was granted, this also what was refused.
type memory struct {
	id      uint64
	granted int64
	grants  []fleet.Grant
}

type laneKey struct {
	group string
	lane  uint64
}

// again answers an ask that this process has had the answer to already, without marks.
func (s *Store) again(a *fleet.Ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.heard[laneKey{a.Group, a.Lane}]
	if !ok || m.id != a.ID {
		return false
	}
	a.Now, a.Granted = s.clock.read().time(), m.granted
	a.Grants = append(a.Grants[:0], m.grants...)
	for i := range a.Grants {
		a.Grants[i].Mark = fleet.Mark{}
	}
	return true
}

func (s *Store) keep(a *fleet.Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := laneKey{a.Group, a.Lane}
	m, ok := s.heard[k]
	for old := range s.heard {
		if ok || len(s.heard) < mostPending {
			break
		}
		delete(s.heard, old)
	}
	delete(s.pending, a.ID)
	s.heard[k] = memory{a.ID, a.Granted, append(m.grants[:0], a.Grants...)}
}
