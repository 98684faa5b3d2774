package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Settings are the persistence and memory settings of a server. A setting that the server does not disclose is
// empty.
type Settings struct {
	Server   string // its address
	Eviction string // maxmemory-policy
	AppendTo string // appendonly: yes or no
	SaveAt   string // save: when the server takes snapshots; "off" if never
}

// off is the value of a setting that is known to be empty.
const off = "off"

// Evicts reports whether the server drops keys when its memory is full. A limit whose key was dropped counts as
// unused.
func (s *Settings) Evicts() bool { return s.Eviction != "" && s.Eviction != "noeviction" }

// Forgets reports whether the server is known to lose its data at a restart.
func (s *Settings) Forgets() bool { return s.AppendTo == "no" && s.SaveAt == off }

// Hidden returns the settings that the server does not disclose, but that Evicts or Forgets need.
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

// Settings reads the settings of each server with CONFIG GET, and the missing ones with INFO. Managed services
// often refuse CONFIG.
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

// asked is a server and the first error of its connection.
type asked struct {
	rueidis.Client
	ctx context.Context
	err error
}

// config returns a setting, empty if the server does not disclose it.
func (n *asked) config(name string) string {
	r := n.Do(n.ctx, n.B().ConfigGet().Parameter(name).Build())
	n.err = cmp.Or(n.err, r.NonRedisError())
	all, err := r.AsStrMap()
	if value, ok := all[name]; err == nil && ok {
		return cmp.Or(value, off)
	}
	return ""
}

// info returns the value of a line of a section of INFO.
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
