package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
)

// A claim is a start in progress, in the store's record.
type claim struct {
	ID    string `json:"id"`
	Job   string `json:"job,omitempty"` // once it is known
	Until int64  `json:"until"`         // Unix time in microseconds of the store's clock
}

// slots are the starts in progress of all processes, in one record.
type slots struct {
	o     *Options
	clock clock.Clock

	mu    sync.Mutex
	alone []claim // starts without a store, by this process's clock

	silence time.Duration // when the upstream last did not answer in time
	silent  error
}

// patience is how often a conflicting write is repeated. storeTimeout is the timeout of a call to the store.
const (
	patience     = 20
	storeTimeout = 2 * time.Second
)

// take takes a slot if one is free. The order is essential: read the slots, then the upstream's list, then write
// the slots, which fails if they have changed. A job whose slot had already been removed is in the list. A slot
// taken in between makes the write fail.
func (s *slots) take(ctx context.Context, begin, came time.Duration) (*Slot, State, error) {
	for try := 0; ; try++ {
		n, claims, at, err := s.count(ctx, came)
		if err != nil {
			if ctx.Err() != nil {
				return nil, State{}, context.Cause(ctx)
			}
			if s.o.Events.Unasked != nil {
				s.o.Events.Unasked(Unasked{err, s.clock.Now() - begin})
			}
			return &Slot{s: s, Unasked: true}, State{}, nil
		}
		state := s.o.state(n)
		if n >= s.o.Threshold {
			return nil, state, nil
		}
		c := claim{ID: strconv.FormatUint(rand.Uint64(), 36), Until: at.now.Add(s.o.Hold).UnixMicro()}
		ok, err := s.write(ctx, at, append(claims, c))
		if ok {
			return &Slot{s: s, id: c.ID, State: state}, state, nil
		}
		if err != nil || s.o.Store == nil {
			return s.takeAlone(n, err)
		}
		if try >= patience { // other processes are always faster, so slots are in use
			return nil, state, nil
		}
		if err := s.clock.Sleep(ctx, rand.N(time.Duration(try+1)*10*time.Millisecond)); err != nil {
			return nil, state, err
		}
	}
}

// A place is a version of the slots.
type place struct {
	version int64
	now     time.Time // by the store's clock
	away    error     // why only this process's starts are known
}

// count reads the slots and then the upstream's jobs, and counts each start once: a listed job no longer counts as
// a slot. A job that is listed before Started is called counts twice until then, so fewer jobs may start, never
// more.
func (s *slots) count(ctx context.Context, came time.Duration) (n int, starting []claim, at place, err error) {
	claims, at := s.read(ctx)
	active, err := s.active(ctx, came)
	if err != nil {
		return 0, nil, at, err
	}
	listed := make(map[string]bool, len(active))
	for _, id := range active {
		listed[id] = true
	}
	for _, c := range claims {
		if c.Until > at.now.UnixMicro() && !listed[c.Job] {
			starting = append(starting, c)
		}
	}
	return len(listed) + len(starting), starting, at, nil
}

// active asks the upstream, with Poll as the timeout. If the upstream did not answer another call since this call
// came, active returns that error without asking again.
func (s *slots) active(ctx context.Context, came time.Duration) ([]string, error) {
	if err := s.silentSince(came); err != nil {
		return nil, err
	}
	ctx, cancel := s.clock.WithTimeout(ctx, s.o.Poll, errSilent)
	defer cancel()
	ids, err := s.o.Active(ctx)
	if err != nil && context.Cause(ctx) == errSilent {
		err = fmt.Errorf("%w: %w", errSilent, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.silence, s.silent = s.clock.Now(), err
	}
	return ids, err
}

// silentSince returns the error if the upstream did not answer since the call came, or nil.
func (s *slots) silentSince(came time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silence > came {
		return s.silent
	}
	return nil
}

var errSilent = errors.New("there was no answer within a poll")

// read reads the slots. If the store is unreachable, it returns this process's own.
func (s *slots) read(ctx context.Context) ([]claim, place) {
	if s.o.Store == nil {
		return s.own(nil)
	}
	ctx, cancel := s.clock.WithTimeout(ctx, storeTimeout, context.DeadlineExceeded)
	defer cancel()
	records, now, err := s.o.Store.Load(ctx, s.o.Group, []string{s.o.Name})
	if err != nil {
		return s.own(err)
	}
	at, claims := place{now: now}, []claim(nil)
	for _, r := range records {
		at.version = r.Version
		if r.Version != 0 && json.Unmarshal(r.Value, &claims) != nil {
			claims = nil // the record is invalid or of another version, and is overwritten
		}
	}
	return claims, at
}

func (s *slots) own(why error) ([]claim, place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]claim(nil), s.alone...), place{now: s.clock.Wall(s.clock.Now()), away: why}
}

// write writes the slots if no other process has changed them.
func (s *slots) write(ctx context.Context, at place, claims []claim) (ok bool, err error) {
	if s.o.Store == nil || at.away != nil {
		return false, at.away
	}
	b, err := json.Marshal(claims)
	if err != nil {
		return false, err
	}
	ctx, cancel := s.clock.WithTimeout(context.WithoutCancel(ctx), storeTimeout, context.DeadlineExceeded)
	defer cancel()
	r := fleet.Record{Name: s.o.Name, Version: at.version, Value: b, Keep: 2*s.o.Hold + time.Minute}
	now, ok, err := s.o.Store.Swap(ctx, s.o.Group, r)
	if err == nil && !ok && string(now.Value) == string(b) {
		return true, nil // this process wrote it, but the answer was lost
	}
	return ok, err
}

// takeAlone takes a slot of this process, without the store.
func (s *slots) takeAlone(n int, why error) (*Slot, State, error) {
	if why != nil && s.o.Events.Alone != nil {
		s.o.Events.Alone(why)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Wall(s.clock.Now())
	kept := s.alone[:0]
	for _, c := range s.alone {
		if c.Until > now.UnixMicro() {
			kept = append(kept, c)
		}
	}
	c := claim{ID: strconv.FormatUint(rand.Uint64(), 36), Until: now.Add(s.o.Hold).UnixMicro()}
	s.alone = append(kept, c)
	return &Slot{s: s, id: c.ID, State: s.o.state(n)}, s.o.state(n), nil
}

// A Slot is held for the start of one job. It is safe for concurrent use.
type Slot struct {
	State   State         // when the slot was granted, without its job; zero if Unasked
	Waited  time.Duration // for the slot
	Unasked bool          // the upstream returned no list, and no slot is held

	s  *slots
	id string // "" if no slot is held
}

// Started reports the job that was started. The slot is held until the upstream lists the job.
func (s *Slot) Started(ctx context.Context, job string) {
	s.s.change(ctx, s.id, func(c *claim, now time.Time) bool {
		c.Job, c.Until = job, now.Add(s.s.o.Hold).UnixMicro()
		return true
	})
}

// Release releases the slot, because no job was started.
func (s *Slot) Release(ctx context.Context) {
	s.s.change(ctx, s.id, func(*claim, time.Time) bool { return false })
}

// change changes a slot, or removes it if f returns false. A slot that cannot be written expires at its deadline.
func (s *slots) change(ctx context.Context, id string, f func(c *claim, now time.Time) (keep bool)) (found bool) {
	if id == "" {
		return false
	}
	if s.changeAlone(id, f) {
		return true
	}
	for try := range patience {
		claims, at := s.read(ctx)
		next, found := edit(claims, id, at.now, f)
		if !found || at.away != nil {
			return found
		}
		if ok, err := s.write(ctx, at, next); ok || err != nil {
			return ok
		}
		_ = s.clock.Sleep(ctx, rand.N(time.Duration(try+1)*10*time.Millisecond))
	}
	return false
}

func (s *slots) changeAlone(id string, f func(c *claim, now time.Time) bool) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone, found = edit(s.alone, id, s.clock.Wall(s.clock.Now()), f)
	return found
}

func edit(claims []claim, id string, now time.Time, f func(c *claim, now time.Time) bool) (next []claim, found bool) {
	for _, c := range claims {
		if c.ID == id {
			if found = true; !f(&c, now) {
				continue
			}
		}
		next = append(next, c)
	}
	return next, found
}
