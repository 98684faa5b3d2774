package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A client runs scripts on a server with rueidis. It is safe for concurrent use.
//
// A call that runs alone gets its own connection, which its own goroutine writes and reads. Concurrent calls share
// one connection per node and are pipelined. Two goroutines of rueidis serve the shared connection, which costs a
// lone caller more time than the decision.
type client struct {
	rueidis func(ctx context.Context) (rueidis.Client, error)
	close   func()
	dialer  *dialer
	sends   sync.Pool
}

func newClient(made func(context.Context) (rueidis.Client, error), close func(), d *dialer) *client {
	return &client{rueidis: made, close: close, dialer: d, sends: sync.Pool{New: func() any { return new(sending) }}}
}

// run runs a script with the keys, which share a hash tag, and the arguments. It appends the response, always a
// string, to reply. It sends the script's hash first, and the text if the server does not know it. It never repeats
// a command after a connection error, because the server may have executed it. It returns by ctx's deadline.
//
// run does not use keys and args after it returns without an error. After an error, the caller must not reuse them:
// they may still be in transit.
func (c *client) run(ctx context.Context, s *script, keys, args [][]byte, reply []byte) ([]byte, error) {
	made, err := c.rueidis(ctx)
	if err != nil {
		return reply, err
	}
	if err := c.dialer.enter(); err != nil {
		return reply, err
	}
	k := c.sends.Get().(*sending)
	k.Context, k.alone, k.dialed = ctx, c.dialer.alone() && soonOver(ctx), false
	r := k.run(made, s, keys, args)
	if _, down := errors.AsType[*errDown](r.NonRedisError()); down && k.alone {
		k.alone = false
		r = k.run(made, s, keys, args)
	}
	c.dialer.leave(ctx, r.NonRedisError())
	if r.NonRedisError() == nil && !k.dialed { // otherwise rueidis may still hold it
		k.Context = nil
		c.sends.Put(k)
	}
	return c.read(r, reply)
}

// read appends the response to reply.
func (c *client) read(r rueidis.RedisResult, reply []byte) ([]byte, error) {
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

// command builds EVALSHA or EVAL without copying the keys and arguments. The caller must not reuse them before the
// response.
func command(c rueidis.Client, verb, script string, keys, args [][]byte) rueidis.Completed {
	a := c.B().Arbitrary(verb, script, strconv.Itoa(len(keys)))
	for _, key := range keys {
		a = a.Keys(rueidis.BinaryString(key))
	}
	for _, arg := range args {
		a = a.Args(rueidis.BinaryString(arg))
	}
	return a.Build()
}

// A sending is the context of one call. It ensures that the call does not wait for a dial.
type sending struct {
	context.Context
	alone  bool // it uses its own connection
	dialed bool // a dial was started for it: a context that rueidis derived from it may outlast the call
}

// mostAlone is the longest timeout of a call on its own connection: only the deadline ends it, and rueidis gives up
// after this time.
const mostAlone = time.Second

func soonOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) <= mostAlone
}

// run runs the script by its hash, and with its text if the server does not know it.
func (c *sending) run(to rueidis.Client, s *script, keys, args [][]byte) rueidis.RedisResult {
	r := to.Do(c, c.by(command(to, "EVALSHA", s.sha, keys, args)))
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = to.Do(c, c.by(command(to, "EVAL", s.text, keys, args)))
	}
	return r
}

// by selects the connection: its own if the call runs alone, or the shared one.
func (c *sending) by(cmd rueidis.Completed) rueidis.Completed {
	if c.alone {
		return cmd
	}
	return cmd.ToPipe()
}

// Deadline returns the deadline of a call on its own connection. Without a deadline, rueidis uses the shared
// connection and notices immediately when the caller leaves.
func (c *sending) Deadline() (time.Time, bool) {
	if c.alone {
		return c.Context.Deadline()
	}
	return time.Time{}, false
}

// Done never returns nil, for the same reason.
func (c *sending) Done() <-chan struct{} {
	if done := c.Context.Done(); done != nil {
		return done
	}
	return never
}

var never = make(chan struct{})

type sendingKey struct{}

func (c *sending) Value(key any) any {
	if key == (sendingKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// sendingOf returns the call that caused a dial, or nil if rueidis dials for itself.
func sendingOf(ctx context.Context) *sending {
	k, _ := ctx.Value(sendingKey{}).(*sending)
	return k
}
