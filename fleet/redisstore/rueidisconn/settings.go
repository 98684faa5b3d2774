package rueidisconn

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// Settings asks each server by CONFIG GET how it is set, and by INFO what that does not tell: a
// service that manages servers for others mostly refuses the former.
func (c *Conn) Settings(ctx context.Context) (all []redisstore.Settings, err error) {
	client, err := c.client(ctx)
	if err != nil {
		return nil, err
	}
	for address, node := range client.Nodes() {
		n := asked{ctx: ctx, Client: node}
		s := redisstore.Settings{Server: address, Eviction: n.config("maxmemory-policy"), AppendTo: n.config("appendonly"), SaveAt: n.config("save")}
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
	slices.SortFunc(all, func(a, b redisstore.Settings) int { return cmp.Compare(a.Server, b.Server) })
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
		return cmp.Or(value, redisstore.Off)
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
