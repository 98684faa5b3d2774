// Package rueidisconn lets a redisstore talk through rueidis, which sends the commands
// of all callers over one connection for each node, and as many at once as there are.
//
// Most callers want Open, which makes a client that suits a limiter: it is told
// at once when the server has gone, never makes a caller wait for a connection, has a new
// one before the next call when the server is back, and allocates nothing for a decision. New is
// for a client that is there already; its timeouts and its patience are then its own.
package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/rueidis"

	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// A Conn runs scripts through a rueidis client. It is safe for concurrent use.
type Conn struct {
	client func(ctx context.Context) (rueidis.Client, error)
	close  func()

	// Of a client that Open has made; otherwise nil.
	dialer *dialer

	calls sync.Pool
}

var _ redisstore.Conn = (*Conn)(nil)

// New makes a Conn of a client, which Close closes. Give the client DisableRetry, since a
// repeat is the business of who asks, and AlwaysPipelining.
func New(c rueidis.Client) *Conn {
	return newConn(func(context.Context) (rueidis.Client, error) { return c, nil }, c.Close, nil)
}

func newConn(client func(context.Context) (rueidis.Client, error), close func(), d *dialer) *Conn {
	return &Conn{client: client, close: close, dialer: d, calls: sync.Pool{New: func() any { return new(call) }}}
}

// Close closes the client and all connections.
func (c *Conn) Close() error {
	c.close()
	return nil
}

// Run is redisstore.Conn's.
func (c *Conn) Run(ctx context.Context, s *redisstore.Script, keys, args [][]byte, reply []byte) ([]byte, error) {
	client, err := c.client(ctx)
	if err != nil {
		return reply, err
	}
	if err := c.dialer.enter(); err != nil {
		return reply, err
	}
	k := c.calls.Get().(*call)
	k.Context = ctx
	r := client.Do(k, evalsha(client, s, keys, args))
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = client.Do(k, eval(client, s, keys, args))
	}
	c.dialer.leave(ctx, r.NonRedisError())
	if r.NonRedisError() == nil { // else the client may hold on to it
		k.Context = nil
		c.calls.Put(k)
	}
	return c.read(r, reply)
}

// read appends an answer to reply.
func (c *Conn) read(r rueidis.RedisResult, reply []byte) ([]byte, error) {
	m, err := r.ToMessage()
	if errors.Is(err, rueidis.ErrNoSlot) {
		err = fmt.Errorf("%w: a part of the cluster is missing: see CLUSTER INFO on its nodes", err)
	}
	if err != nil {
		return reply, err
	}
	if m.IsInt64() && c.dialer != nil {
		n, _ := m.AsInt64()
		return c.dialer.replies.take(n, reply)
	}
	text, err := m.ToString()
	return append(reply, text...), err
}

// evalsha and eval are commands without a copy of what they are made of: it is not
// used again before there is an answer.
func evalsha(c rueidis.Client, s *redisstore.Script, keys, args [][]byte) rueidis.Completed {
	k := c.B().Evalsha().Sha1(s.SHA).Numkeys(int64(len(keys))).Key(rueidis.BinaryString(keys[0]))
	for _, key := range keys[1:] {
		k = k.Key(rueidis.BinaryString(key))
	}
	a := k.Arg(rueidis.BinaryString(args[0]))
	for _, arg := range args[1:] {
		a = a.Arg(rueidis.BinaryString(arg))
	}
	return a.Build()
}

func eval(c rueidis.Client, s *redisstore.Script, keys, args [][]byte) rueidis.Completed {
	k := c.B().Eval().Script(s.Text).Numkeys(int64(len(keys))).Key(rueidis.BinaryString(keys[0]))
	for _, key := range keys[1:] {
		k = k.Key(rueidis.BinaryString(key))
	}
	a := k.Arg(rueidis.BinaryString(args[0]))
	for _, arg := range args[1:] {
		a = a.Arg(rueidis.BinaryString(arg))
	}
	return a.Build()
}

// A call is the context of a caller, who must not wait for a connection.
type call struct{ context.Context }

type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// mustNotWait reports whether a dial is made on behalf of a caller, and not of the
// client itself.
func mustNotWait(ctx context.Context) bool { return ctx.Value(callKey{}) != nil }
