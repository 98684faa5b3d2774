package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	//go:embed register.lua
	registerText string

	registry = newScript(registerText)
)

// What register.lua does.
const (
	registerReads = iota
	registerLists
	registerMakes
)

// Register makes the store's register of groups, if it has none, and lists the groups. A store that lost its memory has lost
// the register too. So a group that an existing register lacks is new, and its limits start full: see adopt.
// weir store init calls Register once it has called Init for all upstreams of its file.
func (s *Store) Register(ctx context.Context, groups ...string) error {
	for _, group := range groups {
		if _, _, err := s.register(ctx, group, registerMakes); err != nil {
			return err
		}
	}
	return nil
}

// register reads or changes the register. It returns when the register was made, in microseconds of the server's clock, -1 if
// there is none, and whether the group was missing from it.
func (s *Store) register(ctx context.Context, group string, act int64) (made int64, missing bool, err error) {
	c := s.call()
	s.tag(c, "")
	c.text = append(c.text, "register"...)
	c.end()
	c.number(s.now(), act)
	keys := len(c.ends)
	c.text = appendName(c.text, group)
	c.end()
	err = s.doKeys(ctx, c, keys, registry, func(r reader) error {
		if len(r.rest) != 2*8 {
			return errReply
		}
		made, missing = r.number(), r.number() == 1
		return nil
	})
	return made, missing, err
}

// An adoption is the first exchange of this process about a group.
type adoption struct {
	done chan struct{} // closed when it has ended
	err  error         // set before
}

const (
	// adoptTime bounds an adoption. It has its own time, as a request that is given up after it listed the group leaves the group cold.
	adoptTime = 10 * time.Second

	// listerTime is how long a process waits for another that has listed a group to say that the group is new.
	listerTime  = time.Second
	listerPause = 10 * time.Millisecond
)

// awaitKnown waits until the store knows the group, so that the first request for units does not find an unknown group, which
// is cold. A group that stays unknown is no error.
func (s *Store) awaitKnown(ctx context.Context, group string) error {
	if s.isKnown(group) {
		return nil
	}
	_, known, err := s.marked(ctx, group)
	if err != nil {
		return err
	}
	if !known {
		// A user of the server who may not read the register has groups that stay cold.
		if err := s.adopt(ctx, group); err != nil && !isForbidden(err) {
			return err
		}
	}
	s.adoptMu.Lock()
	defer s.adoptMu.Unlock()
	s.known[group] = true
	return nil
}

func (s *Store) isKnown(group string) bool {
	s.adoptMu.RLock()
	defer s.adoptMu.RUnlock()
	return s.known[group]
}

// adopt lists a group in the register before its first heartbeat and its first request for units, which wait for the same
// adoption. If the register lacked the group, the group is new, and adopt says so to the store as Init does, unless the store
// has known of the group for longer than the register exists.
//
// The process whose request lists the group is the only one that may say that it is new. If that process ends in between, the
// group stays cold: no limit is exceeded. An adoption that fails is tried again with the next heartbeat or request.
func (s *Store) adopt(ctx context.Context, group string) error {
	s.adoptMu.Lock()
	if s.listed[group] {
		s.adoptMu.Unlock()
		return nil
	}
	a := s.adoptions[group]
	if a == nil {
		a = &adoption{done: make(chan struct{})}
		s.adoptions[group] = a
		own := context.WithoutCancel(ctx)
		s.adopting.Go(func() {
			own, cancel := context.WithTimeout(own, adoptTime)
			defer cancel()
			a.err = s.list(own, group)
			s.adoptMu.Lock()
			defer s.adoptMu.Unlock()
			s.listed[group] = a.err == nil
			delete(s.adoptions, group)
			close(a.done)
		})
	}
	s.adoptMu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return explain(ctx, context.Cause(ctx))
	}
}

// list lists a group. If another process has just listed it, list waits until that process has said that the group is new.
func (s *Store) list(ctx context.Context, group string) error {
	made, missing, err := s.register(ctx, group, registerLists)
	switch {
	case err != nil || made < 0:
		return err
	case missing:
		return s.init(ctx, group, made)
	}
	for begin := time.Now(); time.Since(begin) < listerTime; time.Sleep(listerPause) {
		if _, known, err := s.marked(ctx, group); known || err != nil {
			return err
		}
	}
	return nil
}

// isForbidden reports whether the server's user may not do what was asked for.
func isForbidden(err error) bool {
	e, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && strings.HasPrefix(e.Error(), "NOPERM")
}

// isNew reports whether the register exists and lacks the group.
func (s *Store) isNew(ctx context.Context, group string) (bool, error) {
	made, missing, err := s.register(ctx, group, registerReads)
	return made >= 0 && missing, err
}

// init says of a group that it is new, if the store has known of it only after an instant; -1 says so whatever the store knows.
func (s *Store) init(ctx context.Context, group string, after int64) error {
	c := s.call()
	s.tag(c, group)
	c.end()
	s.members(c, group)
	c.number(after)
	return s.do(ctx, c, mark, func(reader) error { return nil })
}

// sinceOf is an instant that a script returns: 0 for always, -1 for an unknown group.
func sinceOf(at int64) (since time.Time, ok bool) {
	if at > 0 {
		return time.UnixMicro(at), true
	}
	return time.Time{}, at == 0
}
