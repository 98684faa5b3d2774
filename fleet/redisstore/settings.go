package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Settings are what a server says of how it keeps what it was given: what it does not say is empty.
type Settings struct {
	Server   string // its address
	Eviction string // maxmemory-policy
	AppendTo string // appendonly: yes or no
	SaveAt   string // save: when it takes snapshots; "off" if never
}

// off is a setting that is known to be empty.
const off = "off"

// Evicts reports whether the server drops keys when its memory is full: a limit whose key was
// dropped counts as one that nobody has used.
func (s *Settings) Evicts() bool { return s.Eviction != "" && s.Eviction != "noeviction" }

// Forgets reports whether the server is known to begin empty when it is started anew.
func (s *Settings) Forgets() bool { return s.AppendTo == "no" && s.SaveAt == off }

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

// Settings asks each server by CONFIG GET how it is set, and by INFO what that does not tell: a
// service that manages servers for others mostly refuses the former.
func (s *Store) Settings(ctx context.Context) ([]Settings, error) {
	all, err := s.client.settings(ctx)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return all, nil
}

func (c *client) settings(ctx context.Context) (all []Settings, err error) {
	made, err := c.rueidis(ctx)
	if err != nil {
		return nil, err
	}
	for address, node := range made.Nodes() {
		n := asked{ctx: ctx, Client: node}
		s := Settings{Server: address, Eviction: n.config("maxmemory-policy"), AppendTo: n.config("appendonly"), SaveAt: n.config("save")}
		if s.Eviction == "" {
			s.Eviction = n.info("memory", "maxmemory_policy")
		}
		if s.AppendTo == "" {
			s.AppendTo = map[string]string{"1": "yes", "0": "no"}[n.info("persistence", "aof_enabled")]
		}
		if n.err != nil {
			return nil, n.err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Settings) int { return cmp.Compare(a.Server, b.Server) })
	return all, nil
}

// asked is a server that is asked, and the first error of its connection.
type asked struct {
	rueidis.Client
	ctx context.Context
	err error
}

// config is a setting, empty if the server does not tell.
func (n *asked) config(name string) string {
	r := n.Do(n.ctx, n.B().ConfigGet().Parameter(name).Build())
	n.err = cmp.Or(n.err, r.NonRedisError())
	all, err := r.AsStrMap()
	if value, ok := all[name]; err == nil && ok {
		return cmp.Or(value, off)
	}
	return ""
}

// info is a line of a section of what the server tells of itself.
func (n *asked) info(section, name string) string {
	r := n.Do(n.ctx, n.B().Info().Section(section).Build())
	n.err = cmp.Or(n.err, r.NonRedisError())
	text, _ := r.ToString()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
