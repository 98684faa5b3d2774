// Package goredisconn lets a redisstore talk through go-redis, for programs that have such
// a client already. It costs some allocations for each decision, and a connection for
// each caller at a time; rueidisconn costs neither.
package goredisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// A Conn runs scripts through a go-redis client. It is safe for concurrent use.
type Conn struct{ client redis.UniversalClient }

var (
	_ redisstore.Conn = (*Conn)(nil)
	_ io.Closer       = (*Conn)(nil)
)

// New makes a Conn of a client, which Close closes. Give the client the settings that
// Suit makes: with its own it tries again by itself, and waits for seconds for a server
// that has gone.
func New(c redis.UniversalClient) *Conn { return &Conn{c} }

// Open makes a client of one server from a URL, redis:// or rediss://. Errors show nothing
// of it.
func Open(url string) (*Conn, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("redis url: it cannot be read; want redis://user:password@host:port/database, rediss:// for TLS; encode what is special in the password as %XX")
	}
	u := redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
	}
	Suit(&u)
	return New(redis.NewUniversalClient(&u)), nil
}

// Suit makes settings those that a limiter needs: a call ends by its context's deadline, is
// made once, and dials at most once and briefly.
func Suit(o *redis.UniversalOptions) {
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.DialTimeout = 200 * time.Millisecond
	o.DialerRetries = 1
	o.PoolSize = 100 // a caller has a connection to itself
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Second, time.Second, time.Second
	o.DisableIdentity = true
	o.ClientName = "weir"
}

// Run is redisstore.Conn's.
func (c *Conn) Run(ctx context.Context, s *redisstore.Script, keys, args [][]byte, reply []byte) ([]byte, error) {
	names, values := make([]string, len(keys)), make([]any, len(args))
	for i, k := range keys {
		names[i] = string(k)
	}
	for i, a := range args {
		values[i] = a
	}
	r, err := c.client.EvalSha(ctx, s.SHA, names, values...).Result()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		r, err = c.client.Eval(ctx, s.Text, names, values...).Result()
	}
	if err != nil {
		return reply, err
	}
	text, ok := r.(string)
	if !ok {
		return reply, fmt.Errorf("the script answered with a %T, want a string", r)
	}
	return append(reply, text...), nil
}

// Close closes the client.
func (c *Conn) Close() error { return c.client.Close() }
