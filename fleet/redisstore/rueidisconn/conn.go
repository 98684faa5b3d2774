// Package rueidisconn lets a redisstore talk through rueidis. Open makes a client that suits a limiter: it is told
// at once when the server has gone, never makes a caller wait for a connection, has a new
// one before the next call when the server is back, and allocates nothing for a decision.
//
// A call that is alone has a connection to itself, which its own goroutine writes and reads. Calls of
// several callers go over one connection for each node, as many at once as there are; two goroutines of the client
// write and read it, which costs a caller that is alone more than the decision itself.
package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// A Conn runs scripts through a rueidis client. It is safe for concurrent use.
type Conn struct {
	client func(ctx context.Context) (rueidis.Client, error)
	close  func()
	dialer *dialer
	calls  sync.Pool
}

var _ redisstore.Conn = (*Conn)(nil)

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
	k.Context, k.alone = ctx, c.dialer.alone() && soonOver(ctx)
	r := k.run(client, s, keys, args)
	if _, down := errors.AsType[*errDown](r.NonRedisError()); down && k.alone {
		k.alone = false
		r = k.run(client, s, keys, args)
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
	if m.IsInt64() {
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
type call struct {
	context.Context
	alone bool // it has a connection to itself
}

// mostAlone is how long a call may last that is alone: nothing but its deadline ends it, and
// the client gives it no longer.
const mostAlone = time.Second

func soonOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) <= mostAlone
}

// run asks by the script's hash, and with its text if the server does not know it.
func (c *call) run(client rueidis.Client, s *redisstore.Script, keys, args [][]byte) rueidis.RedisResult {
	r := client.Do(c, c.by(evalsha(client, s, keys, args)))
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = client.Do(c, c.by(eval(client, s, keys, args)))
	}
	return r
}

// by is the command, sent over the connection that the call is to have.
func (c *call) by(cmd rueidis.Completed) rueidis.Completed {
	if c.alone {
		return cmd
	}
	return cmd.ToPipe()
}

// Deadline is that of a call that is alone. Without one the client shares the connection, and a
// caller who leaves is heard at once.
func (c *call) Deadline() (time.Time, bool) {
	if c.alone {
		return c.Context.Deadline()
	}
	return time.Time{}, false
}

// Done is never nil, for the same reason.
func (c *call) Done() <-chan struct{} {
	if done := c.Context.Done(); done != nil {
		return done
	}
	return never
}

var never = make(chan struct{})

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
