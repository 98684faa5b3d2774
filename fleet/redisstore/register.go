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

// Actions of register.lua.
const (
	registerReads = iota
	registerLists
	registerMakes
)

// Register creates the store's register of groups if it is missing, and lists the groups in it. A store that lost
// its data has also lost the register. So a group that is missing from an existing register is new, and its limits
// start full: see adopt. The command weir store init calls Register after it has called Init for all upstreams of
// its file.
func (s *Store) Register(ctx context.Context, groups ...string) error {
	for _, group := range groups {
		if _, _, err := s.register(ctx, group, registerMakes); err != nil {
			return err
		}
	}
	return nil
}

// register reads or changes the register. made is when the register was created, in microseconds of the server's
// clock, or -1 if there is no register. missing reports whether the register did not contain the group.
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

// An adoption is this process's registration of a group.
type adoption struct {
	done chan struct{} // closed at the end
	err  error         // set before done is closed
}

const (
	// adoptTime is the timeout of an adoption. It is independent of the request's: if a process gave up after it
	// listed the group, the group would stay cold.
	adoptTime = 10 * time.Second

	// listerTime is how long a process waits for the process that listed a group to declare it new.
	listerTime  = time.Second
	listerPause = 10 * time.Millisecond
)

// awaitKnown waits until the store knows the group. Otherwise the first request for units would find an unknown
// group, which is cold. It returns no error for a group that stays unknown.
func (s *Store) awaitKnown(ctx context.Context, group string) error {
	if s.isKnown(group) {
		return nil
	}
	_, known, err := s.marked(ctx, group)
	if err != nil {
		return err
	}
	if !known {
		// If the server's user may not read the register, unknown groups stay cold.
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

// adopt lists a group in the register before its first heartbeat and its first request for units. Both wait for the
// same adoption. If the register did not contain the group, the group is new, and adopt declares it new as Init
// does. It does not if the store has known the group for longer than the register exists.
//
// Only the process that listed the group may declare it new. If that process ends in between, the group stays cold,
// which exceeds no limit. The next heartbeat or request retries a failed adoption.
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

// list lists a group. If another process has just listed it, list waits until that process has declared the group
// new.
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

// isForbidden reports whether the server's user lacks a permission.
func isForbidden(err error) bool {
	e, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && strings.HasPrefix(e.Error(), "NOPERM")
}

// isNew reports whether the register exists and does not contain the group.
func (s *Store) isNew(ctx context.Context, group string) (bool, error) {
	made, missing, err := s.register(ctx, group, registerReads)
	return made >= 0 && missing, err
}

// init declares a group new if the store learned of it after the given instant. With -1 it always does.
func (s *Store) init(ctx context.Context, group string, after int64) error {
	c := s.call()
	s.tag(c, group)
	c.end()
	s.members(c, group)
	c.number(after)
	return s.do(ctx, c, mark, func(reader) error { return nil })
}

// sinceOf decodes an instant that a script returns: 0 means always, -1 an unknown group.
func sinceOf(at int64) (since time.Time, ok bool) {
	if at > 0 {
		return time.UnixMicro(at), true
	}
	return time.Time{}, at == 0
}
