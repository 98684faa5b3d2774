package redisstore

import (
	"context"
	_ "embed"
	"time"
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

// adopt lists a group in the register before its first heartbeat. If the register lacked the group, the group is new, and
// adopt says so to the store as Init does, unless the store has known of the group for longer than the register exists.
//
// The process whose request lists the group is the only one that may say that it is new. If that process ends in between, the
// group stays cold: no limit is exceeded. An error is no reason to hold the heartbeat back; the next one tries again.
func (s *Store) adopt(ctx context.Context, group string) {
	if _, ok := s.listed.Load(group); ok {
		return
	}
	made, missing, err := s.register(ctx, group, registerLists)
	if err != nil {
		return
	}
	if made >= 0 && missing {
		if err := s.init(ctx, group, made); err != nil {
			return
		}
	}
	s.listed.Store(group, true)
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
