package dynamostore

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/fleet"
)

// The latest answers of lanes are attributes l0, l1, and so on. They contain the lane, the ask, the second, the
// copies granted, and the extra units of each claim. Each lane has its own attribute while there are enough.

// An answer is the stored answer of a lane.
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

// A seat is the attribute of a lane.
type seat struct {
	name string
	old  string // its content
	own  bool   // its content is from this lane
	free bool   // it is empty
	warm bool   // it has another lane's answer of the last minute
	last answer // if own
}

func seatName(i int) string { return "l" + strconv.Itoa(i) }

// seat returns the lane's own seat, else a free one, else the one that was used longest ago.
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

// A sent is an update that may or may not have been executed. It was not executed if the seat is unchanged.
type sent struct {
	item, seat, old string
	free            bool
}

func (t seat) sent(item string) sent { return sent{item, t.name, t.old, t.free} }

// A failure is the record of a failed ask, for its repeat.
type failure struct {
	sent []sent // at most one per item
	void bool   // some granted units may still be returned later, so a repeat gets no grant
}

const mostPending = 4096

// fails updates the failure record of an ask.
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

// remembers records an update that was sent for an item. It keeps the update of an earlier call, because that
// update may be the executed one.
func (s *Store) remembers(id uint64, was sent) {
	s.fails(id, func(f *failure) {
		if f.of(was.item) == nil {
			f.sent = append(f.sent, was)
		}
	})
}

// recalls returns the update that an earlier call of the ask sent for an item, and whether the ask is void.
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

// write stores an answer in the seat. With once, the seat must be unchanged. Then the update is executed at most
// once, whenever it arrives. Updates that return units need that. For others, it is enough that the answer is not
// stored yet, so several updates of a lane can be in progress.
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

// A memory is the latest answer to a lane of this process. The table stores only grants, a memory also refusals.
type memory struct {
	id      uint64
	granted int64
	grants  []fleet.Grant
}

type laneKey struct {
	group string
	lane  uint64
}

// again answers an ask that this process has already answered, without marks.
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
