package redisstore

import (
	"context"
	"errors"
)

// Settings are what a server says of how it keeps what it was given: what it does not say is empty.
type Settings struct {
	Server   string // its address
	Eviction string // maxmemory-policy
	AppendTo string // appendonly: yes or no
	SaveAt   string // save: when it takes snapshots; Off if never
}

// Off is a setting that is known to be empty.
const Off = "off"

// Evicts reports whether the server drops keys when its memory is full: a limit whose key was
// dropped counts as one that nobody has used.
func (s *Settings) Evicts() bool { return s.Eviction != "" && s.Eviction != "noeviction" }

// Forgets reports whether the server is known to begin empty when it is started anew.
func (s *Settings) Forgets() bool { return s.AppendTo == "no" && s.SaveAt == Off }

// Hidden is what the server does not say, of what decides whether it evicts or forgets.
func (s *Settings) Hidden() (all []string) {
	if s.Eviction == "" {
		all = append(all, "maxmemory-policy")
	}
	if s.AppendTo == "" {
		all = append(all, "appendonly")
	}
	if s.SaveAt == "" && s.AppendTo != "yes" {
		all = append(all, "save")
	}
	return all
}

// Settings asks all servers how they are set, with a Conn that can ask for more than scripts:
// rueidisconn can. Otherwise the error is errors.ErrUnsupported.
func (s *Store) Settings(ctx context.Context) ([]Settings, error) {
	c, ok := s.conn.(interface {
		Settings(ctx context.Context) ([]Settings, error)
	})
	if !ok {
		return nil, errors.ErrUnsupported
	}
	all, err := c.Settings(ctx)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return all, nil
}
